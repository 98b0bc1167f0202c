package import ConfigurationFiles
import FleetSeal
import IdentityClient
import IdentityCore
import LinuxSystem

/// The credentials that the service manager passes (systemd.exec(5)).
package struct Credentials: Sendable {
  /// The progress of the invitation in this run.
  enum InvitationUse {
    /// This device may still join with it.
    case possible
    /// This device is or was in an account, so it must not join with the invitation. This is not noted yet.
    case over
    /// Nothing is left to do.
    case settled
  }

  /// The maximum length of a password in bytes.
  private static let longestPassword = 1_024
  /// The content of the credential `identity-fleet.invitation` if there is no invitation (identity-fleet.service).
  private static let noInvitation = Array("none".utf8)
  /// The maximum length of a file with an invitation in bytes.
  private static let longestInvitation = 8_192

  private let folder: String?
  /// The password of the user at the broker; nil if there is none.
  let password: String?
  /// The progress of the invitation.
  var invitationUse: InvitationUse = .possible

  /// Reads the credentials in a folder; nil for none.
  ///
  /// - Throws: if there is a password that cannot be used.
  package init(folder: String?) throws(ConfigurationFailure) {
    self.folder = folder
    password =
      try folder.map { folder throws(ConfigurationFailure) in try Self.password(at: "\(folder)/fleet.password") }
      ?? nil
  }

  private static func password(at path: String) throws(ConfigurationFailure) -> String? {
    let content: ConfigurationAccess.Content
    do throws(SystemError) {
      content = try ConfigurationAccess.read(path: path, limit: longestPassword)
    } catch {
      throw ConfigurationFailure(place: path, reason: "\(error)")
    }
    guard case .bytes(var bytes) = content else { return nil }
    defer { bytes.wipe() }
    // A line of a file ends with a line feed, which is not part of the password.
    if bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
    guard let text = Text(validating: bytes) else {
      throw ConfigurationFailure(place: path, reason: "the password is not text in UTF-8")
    }
    return text.description
  }

  /// Returns the invitation without a passphrase, and its hash in Base64; nil if there is none.
  func invitation() throws(ConfigurationFailure) -> (secret: Secret, hash: Text)? {
    guard let path = path(of: "identity-fleet.invitation") else { return nil }
    let content: ConfigurationAccess.Content
    do throws(SystemError) {
      content = try ConfigurationAccess.read(path: path, limit: Self.longestInvitation)
    } catch {
      throw ConfigurationFailure(place: path, reason: "\(error)")
    }
    guard case .bytes(var text) = content, text != Self.noInvitation else { return nil }
    defer { text.wipe() }
    // Any other content is an invitation that nobody can join with, and the join says so.
    var bytes = Base64Text.decode(text.span, after: Invitation.fileHead) ?? []
    defer { bytes.wipe() }
    var hash: [UInt8] = []
    let digest = sha256(bytes)
    Base64Text.append(digest.span, to: &hash)
    return (Secret(bytes.span), Text(trusted: hash))
  }

  /// Returns the path of a credential; nil if there is none.
  func path(of name: String) -> String? {
    guard let path = folder.map({ "\($0)/\(name)" }), UnixSocket.identity(of: path) != nil else { return nil }
    return path
  }
}
