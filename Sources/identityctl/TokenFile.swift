import IdentityCore
import IdentityWire
import LinuxSystem

// `token put` and `token invalidate` with `--token-file`: keeps the token, which lets its holder send notifications,
// off the command line.
extension Program {
  /// Returns the words of the request, with the token from the file inserted after the provider.
  static func wordsWithToken(_ words: [String], _ line: CommandLine) throws -> [String] {
    guard let path = line.options["token-file"] else { return words }
    let operands = operands(of: words)
    guard let provider = operands.first else { throw CommandLine.UsageError("PROVIDER is missing") }
    guard operands.count == 1 else { throw CommandLine.UsageError("TOKEN cannot be combined with '--token-file'") }
    // A line of a file ends with a line feed, which is not part of the token.
    var token = try bytes(of: path, limit: Bound.tokenLength + 1)
    if token.last == UInt8(ascii: "\n") { token.removeLast() }
    guard !token.isEmpty else { throw emptyInput(path, "a push token is never empty; 'token delete' removes one") }
    guard let text = Text(validating: token) else {
      throw Ending(status: ExitStatus.fileFailed, text: "\(path == "-" ? "standard input" : path) is not text")
    }
    var result = words
    result.insert("\(text)", at: provider + 1)
    return result
  }
}
