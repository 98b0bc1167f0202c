import ClientFormats
import LinuxSystem

/// The files that name a broker to the service of the fleet: the configuration, the certificates of the authorities, and
/// the password.
struct BrokerFiles: ~Copyable {
  /// The beginning of the configuration, by which it is told from a file that a person has written.
  static let head = "# Written by 'identityctl fleet setup', which replaces this file"
  /// The maximum length of certificates, and of a former file that is put back, in bytes.
  private static let longestFormer = 1_048_576
  /// The maximum length of a password in bytes, as the service has it.
  static let longestPassword = 1_024

  /// A file, with its content from before.
  private struct File {
    let path: String
    let mode: UInt32
    var former: [UInt8]?
  }

  /// The path of the configuration.
  let configuration: String
  private let authorities: String
  /// The path of the password; nil for the unit of a user, which gets no credentials.
  private let password: String?
  private var replaced: [File] = []

  /// Creates the files of the system's service, or of this user's.
  init(isOwn: Bool) throws(CommandLine.UsageError) {
    guard isOwn else {
      configuration = "/etc/identityd/identity-fleet.conf.d/50-setup.conf"
      authorities = "/etc/identityd/identity-fleet-ca.pem"
      password = "/etc/credstore/fleet.password"
      return
    }
    guard let folder = Environment["XDG_CONFIG_HOME"] ?? Environment["HOME"].map({ "\($0)/.config" }) else {
      throw CommandLine.UsageError("HOME is not set, so there is no configuration of this user; log in as the user")
    }
    // The unit of a user reads this file alone.
    configuration = "\(folder)/identityd/identity-fleet.conf"
    authorities = "\(folder)/identityd/identity-fleet-ca.pem"
    password = nil
  }

  /// Wipes the former contents, one of which may be a password. In place, since a copy would be wiped in their stead.
  mutating func forgetFormer() { for index in replaced.indices { replaced[index].former?.wipe() } }

  /// Whether the service can have a password.
  var takesPassword: Bool { password != nil }

  /// Writes the files.
  ///
  /// - Parameters:
  ///   - authorities: the path of the file with the certificates of the authorities; nil for those of the system.
  ///   - secret: the password of the user; nil leaves the present one, which no other user gets.
  mutating func write(_ broker: BrokerAddress, authorities source: String?, _ secret: [UInt8]?) throws {
    var lines = [
      "\(Self.head).", "", "[Fleet]",
      // Brokers of other files do not count any more.
      "Broker=", "Broker=\(broker.url)", "Username=\(broker.user ?? "")",
    ]
    if let source {
      try replace(authorities, with: Self.certificates(in: source), mode: 0o644)
      lines.append("CAFile=\(authorities)")
    } else {
      lines.append("CAFile=")
    }
    if let secret, let password { try replace(password, with: secret, mode: 0o600, folderMode: 0o700) }
    try replace(configuration, with: Array(lines.joined(separator: "\n").utf8) + [UInt8(ascii: "\n")], mode: 0o644)
  }

  /// Puts the former files back.
  func putBack() throws(SystemError) {
    for file in replaced.reversed() {
      if let former = file.former {
        try Self.write(former, to: file.path, mode: file.mode)
      } else {
        let folder = try Self.folder(of: file.path)
        try folder.remove(Self.name(of: file.path))
        try folder.synchronize()
      }
    }
  }

  private mutating func replace(
    _ path: String, with bytes: [UInt8], mode: UInt32, folderMode: UInt32 = 0o755
  ) throws(SystemError) {
    try Folder.create(path: Folder.path(around: path), mode: folderMode)
    let former = try Self.folder(of: path).read(Self.name(of: path), limit: Self.longestFormer)
    replaced.append(File(path: path, mode: mode, former: former))
    try Self.write(bytes, to: path, mode: mode)
  }

  /// Replaces a file, whatever the umask is, since the service runs as another user.
  private static func write(_ bytes: [UInt8], to path: String, mode: UInt32) throws(SystemError) {
    let file = try FileReplacement(of: path)
    defer { file.discard() }
    let draft = try file.begin(mode: mode)
    try draft.writeAll(bytes)
    try file.finish(draft)
  }

  private static func folder(of path: String) throws(SystemError) -> Folder {
    try Folder(path: "\(Folder.path(around: path)).")
  }

  private static func name(of path: String) -> String { path.split(separator: "/").last.map(String.init) ?? path }

  /// Reads the certificates of authorities. The copy is for everybody to read, so a private key is refused.
  private static func certificates(in path: String) throws -> [UInt8] {
    var bytes = try Program.bytes(of: path, limit: longestFormer)
    var hasCertificate = false
    for line in bytes.split(separator: UInt8(ascii: "\n")) {
      let text = String(decoding: line, as: UTF8.self)
      if text.hasPrefix("-----BEGIN CERTIFICATE-----") { hasCertificate = true }
      guard !text.hasPrefix("-----BEGIN ") || !text.hasSuffix("PRIVATE KEY-----") else {
        bytes.wipe()
        throw Program.Ending(
          status: Program.ExitStatus.fileFailed,
          text: "\(path) has a private key, which stays with its owner; give a file with the certificate alone")
      }
    }
    guard hasCertificate else {
      throw Program.Ending(status: Program.ExitStatus.fileFailed, text: "\(path) has no certificate in PEM")
    }
    return bytes
  }
}
