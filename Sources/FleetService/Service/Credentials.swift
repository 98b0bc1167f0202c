package import ConfigurationFiles
import FleetSeal
import IdentityClient
import IdentityCore
import LinuxSystem

/// The credentials that the service manager passes (systemd.exec(5)).
package struct Credentials: Sendable {
  /// The maximum length of a password in bytes.
  private static let longestPassword = 1_024

  private let folder: String?
  /// The password of the user at the broker; nil if there is none.
  let password: String?

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

  /// Returns the path of a credential; nil if there is none.
  func path(of name: String) -> String? {
    guard let path = folder.map({ "\($0)/\(name)" }), UnixSocket.identity(of: path) != nil else { return nil }
    return path
  }
}
