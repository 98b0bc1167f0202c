import ConfigurationFiles
import FleetSeal
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem

/// The credential with an invitation, by which a device joins an account without a person.
///
/// A device that was removed or has left must not come back with the invitation of its first join, so the hash of the
/// last one is stored.
struct InvitationCredential {
  /// The progress of the invitation in this run.
  private enum Use {
    /// This device may still join with it.
    case possible
    /// This device is or was in an account, so it must not join with the invitation. This is not noted yet.
    case over
    /// Nothing is left to do.
    case settled
  }

  /// The content of the credential if there is no invitation (identity-fleet.service).
  private static let none = Array("none".utf8)
  /// The item with the hash of the last invitation that this device has used.
  private static let (items, last) = ("identity-fleet-invitation", "last")
  /// The maximum length of a file with an invitation in bytes.
  private static let longest = 8_192

  private let credentials: Credentials
  private let log: ServiceLog
  private var use: Use = .possible

  init(_ credentials: Credentials, _ log: ServiceLog) {
    self.credentials = credentials
    self.log = log
  }

  /// Joins the account of the invitation, once for each invitation.
  ///
  /// - Returns: whether this device has joined.
  mutating func join(over link: DaemonLink) throws(DaemonFault) -> Bool {
    guard use == .possible else {
      try leave(over: link)
      return false
    }
    guard let invitation = read() else { return false }
    do throws(DaemonFault) {
      guard try link.item(Self.last, of: Self.items) != invitation.hash else {
        log.note("the invitation in the credential identity-fleet.invitation was used before, and is left alone")
        use = .settled
        return false
      }
      let name = try Enrolment(link: link, present: nil).join(invitation.secret)
      log.note("joined the account \(name) by the credential identity-fleet.invitation")
    } catch {
      // The next start tries again what a lasting fault does not forbid.
      guard case .refused(let code, let text) = error, ![.busy, .noSpace, .readOnly, .unavailable].contains(code) else {
        throw error
      }
      log.warn("not joined by the credential identity-fleet.invitation: \(text)")
      use = .settled
      return false
    }
    try noteUse(of: invitation.hash, over: link)
    return true
  }

  /// Leaves the invitation alone for good, because this device is in an account: its removal must not make it join
  /// another one, or the same again.
  mutating func leave(over link: DaemonLink) throws(DaemonFault) {
    guard use != .settled, let invitation = read() else { return }
    try noteUse(of: invitation.hash, over: link)
  }

  private mutating func noteUse(of hash: [UInt8], over link: DaemonLink) throws(DaemonFault) {
    use = .over
    do throws(DaemonFault) {
      if try link.item(Self.last, of: Self.items) != hash { try link.putItem(Self.last, of: Self.items, hash) }
      use = .settled
    } catch .refused(_, let text) {
      log.warn("the use of the invitation was not noted: \(text)")
    }
  }

  /// Reads the invitation. One that cannot be read is settled.
  private mutating func read() -> (secret: Secret, hash: [UInt8])? {
    do throws(ConfigurationFailure) {
      if let invitation = try content() { return invitation }
    } catch {
      log.warn("the invitation cannot be read: \(error)")
    }
    use = .settled
    return nil
  }

  /// Returns the invitation without a passphrase, and its hash; nil if there is none.
  private func content() throws(ConfigurationFailure) -> (secret: Secret, hash: [UInt8])? {
    guard let path = credentials.path(of: "identity-fleet.invitation") else { return nil }
    let content: ConfigurationAccess.Content
    do throws(SystemError) {
      content = try ConfigurationAccess.read(path: path, limit: Self.longest)
    } catch {
      throw ConfigurationFailure(place: path, reason: "\(error)")
    }
    guard case .bytes(var text) = content, text != Self.none else { return nil }
    defer { text.wipe() }
    // Any other content is an invitation that nobody can join with, and the join says so.
    var bytes = Base64Text.decode(text.span, after: Invitation.fileHead) ?? []
    defer { bytes.wipe() }
    return (Secret(bytes.span), sha256(bytes))
  }
}
