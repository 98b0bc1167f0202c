import ClientFormats
import FleetSeal
import FleetWire
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem

// The keys of readers outside of an account: of a site's admins, and of senders of push messages.
extension Program {
  /// The first line of a file with the keys of a reader. The second one is the seed of both in Base64.
  private static let keyHead = "identity-fleet-key 1\n"

  /// Makes the keys of a reader in a new file, and shows the setting with which devices know the reader.
  static func makeKeys(_ line: CommandLine, _ format: UUIDFormat) throws -> Int32 {
    let operands = line.words.dropFirst(2)
    let isSite = operands.first?.lowercased() == "site"
    guard isSite || operands.first?.lowercased() == "sender", operands.count <= (isSite ? 1 : 2) else {
      throw CommandLine.UsageError("'fleet keygen' needs 'site', or 'sender' with an optional NAME")
    }
    let name = operands.dropFirst().first ?? "sender"
    guard !name.isEmpty,
      !name.contains(where: { $0.isWhitespace || $0.unicodeScalars.contains(where: WordEncoder.isHidden) })
    else { throw CommandLine.UsageError("NAME is one word") }
    guard let path = line.options["file"] else {
      throw CommandLine.UsageError("'fleet keygen' needs --file=PATH, the file for the private keys")
    }
    try ProcessGuard.forbidDumps()
    guard let seed = SecretKey.random(), let keys = DeviceKeys(seed: seed) else { throw noMemoryForKeys }
    try withFileFailures {
      guard try PathStatus.of(path, followsLink: false) == nil else {
        throw Ending(status: ExitStatus.fileFailed, text: "\(path) exists, and keys in it would be lost for good")
      }
      let file = try FileReplacement(of: path)
      defer { file.discard() }
      var bytes = seed.copy()
      defer { bytes.wipe() }
      var text: [UInt8] = []
      defer { text.wipe() }
      // A growing array would leave copies in memory.
      text.reserveCapacity(keyHead.utf8.count + 2 * bytes.count)
      text += Array(keyHead.utf8)
      Base64Text.append(bytes.span, to: &text)
      text.append(UInt8(ascii: "\n"))
      let draft = try file.begin()
      try draft.writeAll(text)
      try file.finish(draft)
    }
    var setting = Array((isSite ? "SiteKey=" : "Sender=\(name) ").utf8)
    let shown = isSite ? keys.boxKey.bytes : keys.boxKey.bytes + keys.signingKey.bytes
    Base64Text.append(shown.span, to: &setting)
    var content = ReplyLine.Content()
    content.words = [Text(String(decoding: setting, as: UTF8.self))]
    return try show(.init(final: .ok(content)), to: line.words, line, format)
  }

  /// Reads the keys in a file that ``makeKeys(_:_:)`` has made.
  static func keys(in path: String) throws -> DeviceKeys {
    try ProcessGuard.forbidDumps()
    var text = try bytes(of: path, limit: Bound.fileLength)
    defer { text.wipe() }
    guard var bytes = Base64Text.decode(text.span, after: keyHead), bytes.count == SecretKey.length
    else {
      throw Ending(status: ExitStatus.fileFailed, text: "\(path) has no keys of 'identityctl fleet keygen'")
    }
    defer { bytes.wipe() }
    guard let keys = SecretKey(consuming: &bytes).flatMap({ DeviceKeys(seed: $0) }) else { throw noMemoryForKeys }
    return keys
  }

  private static var noMemoryForKeys: Ending {
    Ending(status: ErrorCode.unavailable.exitStatus, text: "there is not enough memory for the keys")
  }
}
