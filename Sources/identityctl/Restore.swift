import ClientFormats
import ClientSecrets
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem

// `restore FILE`: the client reads the backup and sends it in pieces. The daemon decrypts, verifies and applies it.
extension Program {
  /// The bytes of the backup in one request. Their Base64 fits into a line and needs no padding before the last piece.
  private static let pieceLength = 45_000

  /// Restores a backup, or with `--dry-run` shows the changes that a restore would make.
  static func restore(_ line: CommandLine) throws -> Int32 {
    let path = try fileOperand(line, dash: "standard input")
    let format = try UUIDFormat(named: line.options["format"] ?? "hyphen")
    // Before any question, and without a descriptor, which could take the number of --passphrase-fd.
    try withFileFailures { try InputFile.requireReadable(path: path) }
    let consent = try Consent(to: line)
    try ProcessGuard.forbidDumps()
    let source = try passphraseSource(line)
    let file = try withFileFailures { try InputFile(path: path) }
    let header = try readHeader(of: file)
    let patience = try patience(line)
    var connection = try connect(line, patience)
    let keys = try keys(source, header)
    // The daemon drops an upload when it answers its end, and the file may be a pipe. The pieces are kept for the
    // second upload, behind the question.
    var kept: [[UInt8]] = []
    let end = end(line)
    var answer = try upload(keys, end: consent == nil ? end : end + ["dry-run=yes"], over: &connection, patience) {
      let piece = try nextPiece(of: file)
      if consent != nil, let piece { kept.append(piece) }
      return piece
    }
    if let consent, case .ok = answer.final {
      try consent.obtain(showing: answer, to: end, line, format, detail: newerItems(in: answer.rows))
      var pieces = kept.makeIterator()
      answer = try upload(keys, end: end, over: &connection, patience) { pieces.next() }
    }
    return try show(answer, to: end, line, format)
  }

  /// Returns the sentence about the items that are newer here than in the backup; nil if there are none.
  private static func newerItems(in rows: [ReplyLine.Content]) -> String? {
    let newer = rows.compactMap { row -> (here: Timestamp, there: Timestamp)? in
      guard let here = row["previous-modified"].flatMap({ Timestamp(parsing: $0) }),
        let there = row["modified"].flatMap({ Timestamp(parsing: $0) }), here > there
      else { return nil }
      return (here, there)
    }
    guard let newest = newer.max(by: { $0.here < $1.here }) else { return nil }
    let count = newer.count == 1 ? "1 item here is newer" : "\(newer.count) items here are newer"
    return "\(count) than in the backup and would be lost: the newest is from \(newest.here), in the backup from "
      + "\(newest.there)."
  }

  /// Returns the next piece of a backup; nil at its end.
  static func nextPiece(of file: borrowing InputFile) throws -> [UInt8]? {
    var piece = [UInt8](repeating: 0, count: pieceLength)
    let count = try withFileFailures { try file.fill(&piece) }
    guard count > 0 else { return nil }
    piece.removeSubrange(count...)
    return piece
  }

  /// Sends a backup, and a second time with the other key of its passphrase if the first one does not open it.
  static func upload(
    _ keys: borrowing BackupKeys, end: [String], over connection: inout DaemonConnection,
    _ patience: Patience, _ next: () throws -> [UInt8]?
  ) throws -> DaemonConnection.Answer {
    switch keys.former {
    case nil: return try upload(keys.key, end: end, over: &connection, patience, next)
    case .some(let former):
      // The file may be a pipe.
      var sent: [[UInt8]] = []
      let answer = try upload(keys.key, end: end, over: &connection, patience) {
        let piece = try next()
        if let piece { sent.append(piece) }
        return piece
      }
      guard isConflict(answer) else { return answer }
      var pieces = sent.makeIterator()
      let second = try upload(former, end: end, over: &connection, patience) { try pieces.next() ?? next() }
      // If neither key opens the backup, the first answer is as good.
      return isConflict(second) ? answer : second
    }
  }

  /// Whether the daemon says that the passphrase may be wrong.
  private static func isConflict(_ answer: DaemonConnection.Answer) -> Bool {
    guard case .error(let code, _) = answer.final else { return false }
    return ErrorCode(rawValue: "\(code)") == .conflict
  }

  /// Sends the key that opens a backup, the pieces of the backup until `next` returns nil, and the words of the end.
  private static func upload(
    _ key: borrowing BackupKey, end: [String], over connection: inout DaemonConnection,
    _ patience: Patience, _ next: () throws -> [UInt8]?
  ) throws -> DaemonConnection.Answer {
    var answer = try connection.ask(request(["restore", "begin"], key), patience)
    while case .ok = answer.final {
      guard let piece = try next() else { return try connection.ask(RequestLine(words: end), patience) }
      answer = try connection.ask(RequestLine(words: ["restore", "add"]).secret(Secret(piece.span)), patience)
    }
    return answer
  }

  /// Returns the words of the request that applies the uploaded backup.
  private static func end(_ line: CommandLine) -> [String] {
    ["restore", "end"] + ["dry-run", "adopt-device"].filter { line.options[$0] != nil }.map { "\($0)=yes" }
  }

  /// Reads the header line and nothing after it.
  static func readHeader(of file: borrowing InputFile) throws -> BackupHeader {
    var line: [UInt8] = []
    var byte: [UInt8] = [0]
    do {
      // Reads byte by byte, so that the next read continues after the header.
      while line.count < BackupHeader.longestLine, try file.fill(&byte) == 1 {
        if byte[0] == UInt8(ascii: "\n") { return try BackupHeader(parsing: line) }
        line += byte
      }
      // A line without its end is not a header, but its first words may identify a later version of the format.
      _ = try BackupHeader(parsing: line)
      throw BackupHeader.Fault.notABackup
    } catch let fault as BackupHeader.Fault {
      throw Ending(status: ExitStatus.fileFailed, text: "\(file.name) \(fault)")
    } catch let error as SystemError {
      throw Ending(status: ExitStatus.fileFailed, text: "\(error)")
    }
  }
}
