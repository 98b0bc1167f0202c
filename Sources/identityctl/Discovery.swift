import ClientFormats
import Glibc
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem
import Proofs

// The files by which relying parties find the key set of this device (identityctl(1), section "PROOFS").
extension Program {
  /// Writes the configuration and the key set below a folder that a web server shows at the address of `Issuer=`.
  ///
  /// - Returns: nil for any other command.
  static func writeDiscovery(_ line: CommandLine) throws -> Int32? {
    let words = line.words.map { $0.lowercased() }
    guard words.starts(with: ["proof", "discovery"]) else { return nil }
    guard words.count == 2, let output = line.options["output"], !output.isEmpty else {
      throw CommandLine.UsageError("'proof discovery' needs --output=DIR, and nothing else")
    }
    let format = try UUIDFormat(named: line.options["format"] ?? "hyphen")
    let patience = try patience(line)
    var connection = try connect(line, patience)
    let answer = try connection.ask(RequestLine(words: ["proof", "keys"]), patience)
    guard case .ok(let content) = answer.final, let text = content.words.first else {
      return try show(answer, to: line.words, line, format)
    }
    guard let keys = KeySet(parsing: text.bytes) else {
      throw Ending(status: ExitStatus.brokenAnswer, text: "the daemon's key set cannot be read")
    }
    let issuer = keys.entries.first?.issuer
    // Before a first proof, and after the end of a key, there is no issuer to name. The key set has to lose the old key.
    let configuration = try issuer.map { try Self.configuration(of: $0) }
    try replace("\(output)/keys", with: text.bytes)
    if let configuration { try replace("\(output)/.well-known/openid-configuration", with: configuration) }
    var shown = ReplyLine.Content()
    shown.attributes = [.init(name: "keys", value: Text("\(keys.entries.count)"))]
    if let issuer { shown.attributes.append(.init(name: "issuer", value: Text(issuer))) }
    return try show(.init(final: .ok(shown)), to: line.words, line, format)
  }

  /// Returns the configuration of an issuer whose key set is beside it (OpenID Connect Discovery 1.0, section 3).
  ///
  /// Like that of Kubernetes, it has no addresses for a login: nobody logs in at the issuer.
  static func configuration(of issuer: String) throws(Ending) -> [UInt8] {
    guard issuer.hasPrefix("https://") else {
      throw Ending(
        status: ErrorCode.conflict.exitStatus,
        text: "the issuer \(issuer) is no https address, at which relying parties could find the files; "
          + "set Issuer= in section [Proof] of identityd.conf, and reload identityd")
    }
    var path = issuer[...]
    while path.hasSuffix("/") { path.removeLast() }
    var object = JSONObject()
    object.add("issuer", WordEncoder.quoted(issuer))
    object.add("jwks_uri", WordEncoder.quoted("\(path)/keys"))
    for (name, value) in [
      ("response_types_supported", "id_token"), ("subject_types_supported", "public"),
      ("id_token_signing_alg_values_supported", "ES256"),
    ] {
      object.add(name, JSONObject.array([WordEncoder.quoted(value)]))
    }
    return Array(object.text.utf8)
  }

  /// Replaces a file, unless its content is the same, so that the time of its last change stays true.
  static func replace(_ path: String, with bytes: [UInt8], end: String = "\n") throws {
    let content = bytes + Array(end.utf8)
    let (folder, name) = (Folder.path(around: path), path.split(separator: "/").last.map(String.init) ?? path)
    let file = try withFileFailures(status: ExitStatus.cannotCreate) {
      // The web server runs as another user, whatever the umask of this one.
      umask(0o022)
      try Folder.create(path: folder, mode: 0o755)
      return try FileReplacement(of: path, followsLinksOfOthers: false)
    }
    // A file that cannot be read, or is longer, has another content.
    let former = try? Folder(path: "\(folder).").read(name, limit: content.count)
    if former == content { return }
    try publish(content, in: file)
  }
}
