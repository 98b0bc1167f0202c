import ClientFormats
import Glibc
import IdentityCore
import IdentityWire
import LinuxSystem

// `migrate LEVEL --file=PATH`: the client reads the value from a file, with the permissions of its user.
extension Program {
  /// Returns the words of the request, with the value from the file inserted after the verb.
  static func wordsWithFile(_ words: [String], _ line: CommandLine) throws -> [String] {
    let field = line.options["field"]
    guard let path = line.options["file"] else {
      guard field == nil else { throw CommandLine.UsageError("option '--field' requires '--file'") }
      return words
    }
    // Apart from its value, `migrate` takes only attributes.
    guard operands(of: words).isEmpty else {
      throw CommandLine.UsageError("VALUE cannot be combined with '--file'")
    }
    let name = path == "-" ? "standard input" : path
    let bytes = try path == "-" ? standardInput() : content(of: path)
    do {
      let value = try FieldFile(bytes).uuid(of: field)
      return words.prefix(2) + [value] + words.dropFirst(2)
    } catch {
      let status = if case .notUUID = error { ErrorCode.invalidUUID.exitStatus } else { ExitStatus.fileFailed }
      throw Ending(status: status, text: error.text(file: name))
    }
  }

  private static func content(of path: String) throws -> [UInt8] {
    do {
      switch try ConfigurationAccess.read(path: path, limit: Bound.fileLength) {
      case .missing: throw Ending(status: ExitStatus.fileFailed, text: "there is no file \(path)")
      case .masked: return []
      case .bytes(let bytes): return bytes
      }
    } catch let error as SystemError {
      let text =
        switch error.code {
        case EFBIG: "\(path) is longer than \(Bound.fileLength) bytes"
        case EINVAL: "\(path) is not a regular file; to read from a pipe, use --file=-"
        default: "\(error)"
        }
      throw Ending(status: ExitStatus.fileFailed, text: text)
    }
  }

  private static func standardInput() throws -> [UInt8] {
    try withFileFailures {
      let input = try InputFile(path: "-")
      var bytes = [UInt8](repeating: 0, count: Bound.fileLength + 1)
      let count = try input.fill(&bytes)
      guard count <= Bound.fileLength else {
        throw Ending(status: ExitStatus.fileFailed, text: "\(input.name) is longer than \(Bound.fileLength) bytes")
      }
      return Array(bytes.prefix(count))
    }
  }
}
