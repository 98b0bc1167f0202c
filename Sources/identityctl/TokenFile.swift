import IdentityCore
import IdentityWire
import LinuxSystem

// `token put` and `token invalidate` with `--token-file`: who may send is not shown to whoever sees the command line.
extension Program {
  /// The words of the request, with the token from the file behind the provider.
  static func wordsWithToken(_ words: [String], _ line: CommandLine) throws -> [String] {
    guard let path = line.options["token-file"] else { return words }
    let operands = operands(of: words)
    guard let provider = operands.first else { throw CommandLine.UsageError("PROVIDER is missing") }
    guard operands.count == 1 else { throw CommandLine.UsageError("TOKEN is given, and '--token-file' as well") }
    // A line of a file has an end, which is not the token's.
    var token = try bytes(of: path, limit: Bound.tokenLength + 1)
    if token.last == UInt8(ascii: "\n") { token.removeLast() }
    guard let text = Text(validating: token) else {
      throw Ending(status: ExitStatus.fileFailed, text: "\(path == "-" ? "standard input" : path) holds no text")
    }
    var result = words
    result.insert("\(text)", at: provider + 1)
    return result
  }
}
