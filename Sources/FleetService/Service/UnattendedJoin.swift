import FleetSeal
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem

// The credential with an invitation, by which a device joins without a person.
extension Service {
  /// Joins the account of the invitation among the credentials, once for each invitation.
  ///
  /// A device that was removed or has left must not come back with the invitation of its first join, so the hash of the
  /// last one is stored.
  ///
  /// - Returns: whether this device has joined.
  func joinUnattended() throws(DaemonFault) -> Bool {
    guard let link, let invitation = credentials.takeInvitation() else { return false }
    do throws(DaemonFault) {
      guard try link.lastInvitation() != invitation.hash else {
        log.note("the invitation in the credential identity-fleet.invitation was used before, and is left alone")
        return false
      }
      let name = try Enrolment(link: link, present: nil).join(invitation.secret)
      log.note("joined the account \(name) by the credential identity-fleet.invitation")
    } catch {
      guard case .refused(_, let text) = error else { throw error }
      log.warn("not joined by the credential identity-fleet.invitation: \(text)")
      return false
    }
    try noteUse(of: invitation.hash)
    return true
  }

  /// Leaves the invitation alone for good, because this device is in an account: its removal must not make it join
  /// another one, or the same again.
  func leaveInvitation() throws(DaemonFault) {
    if let invitation = credentials.takeInvitation() { try noteUse(of: invitation.hash) }
  }

  private func noteUse(of hash: Text) throws(DaemonFault) {
    do throws(DaemonFault) {
      guard let link, try link.lastInvitation() != hash else { return }
      try link.putLastInvitation(hash)
    } catch {
      guard case .refused(_, let text) = error else { throw error }
      log.warn("the use of the invitation was not noted: \(text)")
    }
  }
}

extension DaemonLink {
  private static let invitation = ["service=identity-fleet-invitation", "account=last"]

  /// Returns the hash of the last invitation that this device has used without a person; nil if there is none.
  func lastInvitation() throws(DaemonFault) -> Text? {
    do throws(DaemonFault) {
      guard case .ok(let content) = try ask(RequestLine(words: ["item", "read"] + Self.invitation)).final else {
        return nil
      }
      return content["data"]
    } catch .refused(code: .notFound, _) {
      return nil
    }
  }

  /// Notes the hash of an invitation that this device uses without a person.
  func putLastInvitation(_ hash: Text) throws(DaemonFault) {
    _ = try ask(RequestLine(words: ["item", "put"] + Self.invitation + ["this-device-only=yes", "data=\(hash)"]))
  }
}
