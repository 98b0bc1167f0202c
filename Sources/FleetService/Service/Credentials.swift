import LinuxSystem

/// The credentials that the service manager passes (systemd.exec(5)).
package struct Credentials: Sendable {
  /// The maximum length of a password in bytes.
  private static let longestPassword = 1_024

  private let folder: String?

  /// Creates the credentials in a folder; nil for none.
  package init(folder: String?) { self.folder = folder }

  /// The password of the user at the broker; nil if there is none.
  var password: String? {
    guard let path = path(of: "fleet.password"),
      case .bytes(let bytes)? = try? ConfigurationAccess.read(path: path, limit: Self.longestPassword)
    else { return nil }
    // A line of a file ends with a line feed, which is not part of the password.
    return String(validating: bytes.last == UInt8(ascii: "\n") ? bytes.dropLast() : bytes[...], as: UTF8.self)
  }

  /// Returns the path of a credential; nil if there is none.
  func path(of name: String) -> String? {
    guard let path = folder.map({ "\($0)/\(name)" }), UnixSocket.identity(of: path) != nil else { return nil }
    return path
  }
}
