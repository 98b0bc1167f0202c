package import IdentityCore
import LinuxSystem

extension ManifestReader {
  /// Looks up the IDs of the users that manifests name.
  ///
  /// - Returns: the known IDs, and for every other name the reason why it has none.
  package static func userIDs(of names: Set<Text>) -> (known: [Text: UInt32], faults: [Text: String]) {
    userIDs(of: names, look: Accounts.userID(named:))
  }

  /// Looks up user IDs in any name service.
  ///
  /// - Parameter look: returns the ID of a user; nil if there is no such user.
  static func userIDs(
    of names: Set<Text>, look: (String) throws(SystemError) -> UInt32?
  ) -> (known: [Text: UInt32], faults: [Text: String]) {
    var known: [Text: UInt32] = [:]
    var faults: [Text: String] = [:]
    for name in names {
      do {
        guard let id = try look("\(name)") else {
          faults[name] = "the user \(name) does not exist yet"
          continue
        }
        if UserRanges.dynamic.contains(id) {
          faults[name] =
            "\(name) is a dynamic user, whose number \(id) is reused for other services; name the unit instead"
        } else if UserRanges.unmapped.contains(id) {
          faults[name] = "\(name) stands for all users that have no number here; name another user"
        } else {
          known[name] = id
        }
      } catch {
        faults[name] = "\(error)"
      }
    }
    return (known, faults)
  }
}
