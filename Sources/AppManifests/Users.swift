package import IdentityCore
import LinuxSystem

extension ManifestReader {
  /// The numbers that the kernel shows for users that it cannot name here: all of them would be one app (user_namespaces(7),
  /// and 65535 for those that keep numbers in 16 bits).
  private static let unmappedUsers: ClosedRange<UInt32> = 65_534...65_535

  /// The numbers of the users that manifests name.
  ///
  /// - Returns: the numbers, and for every other name why it has none.
  package static func userIDs(of names: Set<Text>) -> (known: [Text: UInt32], faults: [Text: String]) {
    userIDs(of: names, look: Accounts.userID(named:))
  }

  /// The same, of any name service.
  ///
  /// - Parameter look: the number of a user; nil where there is no such user.
  static func userIDs(
    of names: Set<Text>, look: (String) throws(SystemError) -> UInt32?
  ) -> (known: [Text: UInt32], faults: [Text: String]) {
    var known: [Text: UInt32] = [:]
    var faults: [Text: String] = [:]
    for name in names {
      do {
        guard let id = try look("\(name)") else {
          faults[name] = "there is no user \(name) yet"
          continue
        }
        if UserRanges.dynamic.contains(id) {
          faults[name] =
            "\(name) is a dynamic user, whose number \(id) goes on to other services: name the unit instead"
        } else if unmappedUsers.contains(id) {
          faults[name] = "\(name) stands for every user that the kernel cannot name: it is nobody in particular"
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
