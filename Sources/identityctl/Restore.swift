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
    try ProcessGuard.forbidDumps()
    let source = try passphraseSource(line)
    let file = try withFileFailures { try InputFile(path: path) }
    let header = try readHeader(of: file)
    var connection = try DaemonConnection(to: DaemonSocket(line.options["socket"]))
    var answer = try begin(key(source, header, for: .open), over: &connection)
    var piece = [UInt8](repeating: 0, count: pieceLength)
    while case .ok = answer.final {
      let count = try withFileFailures { try file.fill(&piece) }
      guard count > 0 else {
        answer = try connection.ask(RequestLine(words: end(line)))
        break
      }
      let request = RequestLine(words: ["restore", "add"]).secret(Secret(piece.span.extracting(..<count)))
      answer = try connection.ask(request)
    }
    return try show(answer, to: end(line), line, format)
  }

  /// Announces a backup to the daemon and sends the key that opens it.
  private static func begin(_ key: borrowing BackupKey, over connection: inout DaemonConnection) throws
    -> DaemonConnection.Answer
  {
    try connection.ask(request(["restore", "begin"], key))
  }

  /// Returns the words of the request that applies the uploaded backup.
  private static func end(_ line: CommandLine) -> [String] {
    ["restore", "end"] + ["dry-run", "adopt-device"].filter { line.options[$0] != nil }.map { "\($0)=yes" }
  }

  /// Reads the header line and nothing after it.
  private static func readHeader(of file: borrowing InputFile) throws -> BackupHeader {
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
