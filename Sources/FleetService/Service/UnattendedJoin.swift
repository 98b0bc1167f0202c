import ConfigurationFiles
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
    guard credentials.invitationUse == .possible else {
      try leaveInvitation()
      return false
    }
    guard let link, let invitation = readInvitation() else { return false }
    do throws(DaemonFault) {
      guard try link.lastInvitation() != invitation.hash else {
        log.note("the invitation in the credential identity-fleet.invitation was used before, and is left alone")
        credentials.invitationUse = .settled
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
      credentials.invitationUse = .settled
      return false
    }
    credentials.invitationUse = .over
    try noteUse(of: invitation.hash)
    return true
  }

  /// Leaves the invitation alone for good, because this device is in an account: its removal must not make it join
  /// another one, or the same again.
  func leaveInvitation() throws(DaemonFault) {
    guard credentials.invitationUse != .settled, let invitation = readInvitation() else { return }
    credentials.invitationUse = .over
    try noteUse(of: invitation.hash)
  }

  /// Reads the invitation. One that cannot be read is settled.
  private func readInvitation() -> (secret: Secret, hash: Text)? {
    do throws(ConfigurationFailure) {
      if let invitation = try credentials.invitation() { return invitation }
    } catch {
      log.warn("the invitation cannot be read: \(error)")
    }
    credentials.invitationUse = .settled
    return nil
  }

  private func noteUse(of hash: Text) throws(DaemonFault) {
    do throws(DaemonFault) {
      guard let link else { return }
      if try link.lastInvitation() != hash { try link.putLastInvitation(hash) }
      credentials.invitationUse = .settled
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
