import ClientFormats
import ClientSecrets
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem

/// A file that a command is about to replace.
struct PresentFile {
  /// The path as given.
  let path: String
  /// The first bytes of the file.
  let head: [UInt8]

  /// Reads the beginning of a file.
  ///
  /// - Returns: nil if there is no file, or an empty one, which has nothing to lose.
  init?(at path: String) throws {
    guard let status = try Program.withFileFailures({ try PathStatus.of(path, followsLink: false) }), status.size > 0
    else { return nil }
    self.path = path
    head = try Program.withFileFailures {
      var bytes = [UInt8](repeating: 0, count: BackupHeader.longestLine)
      let count = try InputFile(path: path).fill(&bytes)
      return Array(bytes.prefix(count))
    }
  }

  /// Asks whether to replace a file, unless it begins like one that the command has made.
  ///
  /// - Parameters:
  ///   - head: the beginning of such a file.
  ///   - kind: the kind of such a file, with its article.
  static func obtainConsent(
    toReplace path: String, unlessItBegins head: String, as kind: String, _ line: CommandLine
  ) throws {
    guard line.options["yes"] == nil, let present = try PresentFile(at: path), !present.head.starts(with: head.utf8)
    else { return }
    try Consent.obtain(toReplace: path, which: "is not \(kind)", line)
  }
}

// `backup FILE` over an existing file.
extension Program {
  /// Returns the identifier of the daemon's store, as text; nil if the daemon does not tell.
  static func identifierOfStore(
    over connection: inout DaemonConnection, _ patience: Patience
  ) throws -> [UInt8]? {
    let answer = try connection.ask(RequestLine(words: ["status"]), patience)
    return answer.rows.lazy.compactMap { $0[Text(StatusRow.storeIdentifier.name)] }.first?.bytes
  }

  /// Returns the reason not to replace a file by a backup, as a predicate of the file. Nil if nothing is lost but an
  /// earlier backup of the same store.
  static func reason(
    toKeep present: PresentFile?, _ store: [UInt8]?, _ source: borrowing PassphraseSource?,
    over connection: inout DaemonConnection, _ patience: Patience
  ) throws -> String? {
    guard let present else { return nil }
    let header: BackupHeader
    do throws(BackupHeader.Fault) {
      header = try BackupHeader(parsing: Array(present.head.prefix { $0 != UInt8(ascii: "\n") }))
    } catch {
      return "\(error)"
    }
    if let store, header.isOf(store) { return nil }
    guard !header.namesStore else { return "is a backup of another store" }
    let isOurs = try isFromHere(present, header, source, over: &connection, patience)
    return isOurs ? nil : "is a backup that does not name its store"
  }

  /// Returns whether a backup of format 1, which has no mark of its store, is of this machine: the daemon tells in a dry
  /// run of a restore. False if the passphrase is not given, or does not open the backup.
  private static func isFromHere(
    _ present: PresentFile, _ header: BackupHeader, _ source: borrowing PassphraseSource?,
    over connection: inout DaemonConnection, _ patience: Patience
  ) throws -> Bool {
    guard let keys = try givenKeys(source, header) else { return false }
    let file = try withFileFailures { try InputFile(path: present.path) }
    _ = try readHeader(of: file)
    let answer = try upload(keys, end: ["restore", "end", "dry-run=yes"], over: &connection, patience) {
      try nextPiece(of: file)
    }
    return answer.rows.contains { row in
      row.words.count > 1 && row.words[0] == "device" && ["kept", "restored"].contains(row.words[1])
    }
  }

  /// Shows the answer to `backup FILE --dry-run`.
  static func show(
    replacing present: PresentFile?, which reason: String?, _ line: CommandLine, _ format: UUIDFormat
  ) throws -> Int32 {
    var content = ReplyLine.Content()
    content.words = [present == nil ? "created" : "replaced"]
    if let reason { content.attributes.append(.init(name: "reason", value: Text(reason))) }
    return try show(.init(final: .ok(content)), to: ["backup", "--dry-run=yes"], line, format)
  }
}
