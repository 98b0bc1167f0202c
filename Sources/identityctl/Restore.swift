import ClientFormats
import ClientSecrets
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem

// `restore FILE`: the client reads and hands in, piece by piece; the daemon decrypts, checks and brings it into force.
extension Program {
  /// What goes into one request, in bytes: its Base64 fits into a line, and has no padding before the end.
  private static let pieceLength = 45_000

  /// Brings a backup into force, or tells what that would change.
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
        answer = try connection.ask(DaemonConnection.request(end(line)))
        break
      }
      var request = Array("restore add data=".utf8)
      Base64.append(piece[..<count], to: &request)
      request.append(UInt8(ascii: "\n"))
      answer = try connection.ask(line: request)
    }
    return try show(answer, to: line, format)
  }

  /// Tells the daemon that a backup comes, and what opens it.
  private static func begin(_ key: borrowing BackupKey, over connection: inout DaemonConnection) throws
    -> DaemonConnection.Answer
  {
    var request = request("restore begin", key)
    defer { request.wipe() }
    return try connection.ask(line: request)
  }

  /// The words that bring what was handed in into force.
  private static func end(_ line: CommandLine) -> [String] {
    ["restore", "end"] + ["dry-run", "adopt-device"].filter { line.options[$0] != nil }.map { "\($0)=yes" }
  }

  /// Reads the first line, and nothing behind it.
  private static func readHeader(of file: borrowing InputFile) throws -> BackupHeader {
    var line: [UInt8] = []
    var byte: [UInt8] = [0]
    do {
      // Byte by byte, so that the file goes on where the header ends.
      while line.count < BackupHeader.longestLine, try file.fill(&byte) == 1 {
        if byte[0] == UInt8(ascii: "\n") { return try BackupHeader(parsing: line) }
        line += byte
      }
      // Without its end it is none; a later version may be known by how it begins all the same.
      _ = try BackupHeader(parsing: line)
      throw BackupHeader.Fault.notABackup
    } catch let fault as BackupHeader.Fault {
      throw Ending(status: ExitStatus.fileFailed, text: "\(file.name) \(fault)")
    } catch let error as SystemError {
      throw Ending(status: ExitStatus.fileFailed, text: "\(error)")
    }
  }
}
