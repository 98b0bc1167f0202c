import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem

// The secrets of items, and the recovery key. `--data-file` reads one without exposing it on the command line, and
// `--raw` writes one as bytes.
extension Program {
  /// Returns whether a verb that takes a secret requires one; nil for any other verb.
  private static func needsSecret(_ verb: String) -> Bool? {
    switch verb {
    case "item add", "item put", "key protect", "key recover": true
    case "item update": false
    default: nil
    }
  }

  /// Returns the request, including the secret from `--data-file`.
  static func request(_ words: [String], _ line: CommandLine) throws -> RequestLine {
    let verb = VerbName(words).text
    let request = RequestLine(words: words)
    guard let needsSecret = needsSecret(verb) else {
      let findsSecrets = verb == "item find" && words.contains { $0.lowercased() == "data=yes" }
      if verb == "item read" || findsSecrets { try ProcessGuard.forbidDumps() }
      return request
    }
    try ProcessGuard.forbidDumps()
    let isGiven = words.contains { $0.lowercased().hasPrefix("data=") }
    let isEmptyAllowed = line.options["allow-empty"] != nil
    if words.contains(where: { $0.lowercased() == "data=" }), !isEmptyAllowed {
      throw CommandLine.UsageError(
        "the secret in 'data=' is empty, and nothing was sent; to send it, add --allow-empty")
    }
    guard let path = line.options["data-file"] else {
      guard isGiven || !needsSecret else {
        throw CommandLine.UsageError("the secret is missing; '--data-file=-' reads it from standard input")
      }
      return request
    }
    guard !isGiven else { throw CommandLine.UsageError("'data=' cannot be combined with '--data-file'") }
    var secret = try bytes(of: path, limit: Bound.secretLength)
    defer { secret.wipe() }
    guard !secret.isEmpty || isEmptyAllowed else {
      throw emptyInput(path, "to send an empty secret, add --allow-empty")
    }
    return request.secret(Secret(secret.span))
  }

  /// Returns the error about an empty file or pipe. The command that should have filled it may have failed.
  static func emptyInput(_ path: String, _ advice: String) -> Ending {
    let name = path == "-" ? "standard input" : path
    return Ending(status: ExitStatus.fileFailed, text: "\(name) is empty, and nothing was sent; \(advice)")
  }

  /// Reads a whole file of at most `limit` bytes. The caller must wipe the result.
  static func bytes(of path: String, limit: Int) throws -> [UInt8] {
    try withFileFailures {
      let file = try InputFile(path: path)
      var bytes = [UInt8](repeating: 0, count: limit + 1)
      let count = try file.fill(&bytes)
      guard count <= limit else {
        bytes.wipe()
        throw Ending(status: ExitStatus.fileFailed, text: "\(file.name) is longer than \(limit) bytes")
      }
      bytes.removeLast(bytes.count - count)
      return bytes
    }
  }

  /// Writes the secret in the answer to `item read`, and nothing else.
  static func showSecret(_ answer: ReceivedAnswer, to line: CommandLine) throws -> Int32 {
    switch answer.final {
    case .ok:
      guard let secret = answer.secret else {
        throw Ending(status: ExitStatus.brokenAnswer, text: "the daemon sent an item without its secret")
      }
      let isShown = line.options["quiet"] != nil || secret.withBytes { StandardStream.output.write($0, waits: true) }
      guard isShown else { return ExitStatus.outputFailed }
    case .error(let code, let text): complain("\(text) (\(code))", line)
    case .row, .event: break
    }
    return status(of: answer.final)
  }
}
