import IdentityClient
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

  /// Returns the words of a request with the spelling of a provider under which the app has a token.
  ///
  /// People write a provider's name in either case. The daemon compares names byte by byte, as all others.
  static func withKnownProvider(
    _ words: [String], over connection: inout DaemonConnection, _ patience: Patience
  ) throws -> [String] {
    guard words.first?.lowercased() == "token", words.count > 1, words[1].lowercased() != "list",
      let index = operands(of: words).first
    else { return words }
    let answer = try connection.ask(
      RequestLine(words: ["token", "list"] + words.filter { $0.lowercased().hasPrefix("app=") }), patience)
    let known = answer.rows.compactMap { $0["provider"].map { "\($0)" } }
    guard !known.contains(words[index]),
      let other = known.first(where: { $0.lowercased() == words[index].lowercased() })
    else { return words }
    var words = words
    words[index] = other
    return words
  }
}
