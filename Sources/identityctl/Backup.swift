import ClientFormats
import ClientSecrets
import Glibc
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem

// `backup FILE`: the daemon encrypts the backup and sends it in pieces, and the client writes them.
extension Program {
  /// Fetches a backup from the daemon and writes it to the file operand, or to standard output for `-`.
  static func backUp(_ line: CommandLine) throws -> Int32 {
    let path = try fileOperand(line, dash: "standard output")
    let format = try UUIDFormat(named: line.options["format"] ?? "hyphen")
    guard path != "-" || !StandardStream.output.isTerminal else {
      throw CommandLine.UsageError("a backup cannot be written to a terminal; name a file or use a pipe")
    }
    try ProcessGuard.forbidDumps()
    // A failed write must become an exit status, not a SIGPIPE or SIGXFSZ, so that the partial file is removed.
    ProcessGuard.ignoreFatalWriteSignals()
    let isDry = line.options["dry-run"] != nil
    let source = isDry && line.options["passphrase-fd"] == nil ? nil : try passphraseSource(line)
    let file = try path == "-" ? nil : replacement(of: path)
    let patience = try patience(line)
    var connection = try connect(line, patience)
    let store = try file == nil ? nil : identifierOfStore(over: &connection, patience)
    // With --yes, a file is replaced that cannot be read, too.
    let isAgreed = line.options["yes"] != nil && !isDry
    let present = try file == nil || isAgreed ? nil : PresentFile(at: path)
    let reason = try reason(toKeep: present, store, source, over: &connection, patience)
    guard let source, !isDry else { return try show(replacing: present, which: reason, line, format) }
    try Consent.obtain(toReplace: path, which: reason, line)
    let header = try BackupHeader(of: store)
    let key = try newKey(source, header)
    guard let file else {
      // Standard output carries the backup, so no reply is shown there.
      let answer = try fetch(header, key, from: &connection, patience) { piece in
        guard StandardStream.output.write(piece, waits: true) else {
          throw Ending(status: ExitStatus.outputFailed, text: "standard output could not be written")
        }
      }
      if case .error(let code, let text) = answer.final { complain("\(text) (\(code))", line) }
      return status(of: answer.final)
    }
    let answer = try withFileFailures {
      try SignalWatch.run(SignalWatch.ending, leave: { file.discard() }) {
        let draft = try file.begin()
        defer { file.discard() }
        let answer = try fetch(header, key, from: &connection, patience) { try draft.writeAll($0) }
        if case .ok = answer.final { try file.finish(draft) }
        return answer
      }
    }
    return try show(answer, to: ["backup"], line, format)
  }

  /// Checks that the file can be created or replaced, before the user is asked for a passphrase.
  private static func replacement(of path: String) throws -> FileReplacement {
    do {
      return try FileReplacement(of: path)
    } catch  where error.code == EINVAL {
      throw Ending(
        status: ExitStatus.fileFailed,
        text: "\(path) is not a regular file; to write to something else, use '-' and redirect standard output")
    } catch  where error.code == ELOOP {
      throw Ending(
        status: ExitStatus.fileFailed, text: "\(path) is a symbolic link; name its target")
    } catch {
      throw Ending(status: ExitStatus.fileFailed, text: "\(error)")
    }
  }

  /// Requests the backup and passes it to `write`, with the header first.
  private static func fetch(
    _ header: BackupHeader, _ key: borrowing BackupKey, from connection: inout DaemonConnection,
    _ patience: Patience, _ write: ([UInt8]) throws -> Void
  ) throws -> DaemonConnection.Answer {
    var total = 0
    var isBegun = false
    let final = try connection.ask(request(["backup"], key), patience) { row in
      guard let data = row["data"], let piece = Base64Text.decode(data.bytes.span) else {
        throw Ending(status: ExitStatus.brokenAnswer, text: "the daemon sent a piece of a backup without data")
      }
      // The header waits for the first piece: a refusal sends no pieces, and then nothing must be written.
      if !isBegun { try write(header.line) }
      isBegun = true
      total += piece.count
      try write(piece)
    }
    if case .ok(let content) = final {
      let sent = content.words.first.map { "\($0)" } ?? ""
      guard total > 0, sent == "\(total)" else {
        throw Ending(
          status: ExitStatus.brokenAnswer,
          text: "the backup is incomplete: \(total) bytes were received, and the daemon sent '\(sent)'")
      }
    }
    return DaemonConnection.Answer(final: final)
  }

  /// Returns the only operand of `backup` and `restore`.
  static func fileOperand(_ line: CommandLine, dash: String) throws(CommandLine.UsageError) -> String {
    let verb = line.words[0].lowercased()
    guard line.words.count == 2 else {
      throw CommandLine.UsageError("'\(verb)' takes one FILE and nothing else; - is \(dash)")
    }
    let path = line.words[1]
    guard !WordEncoder.looksLikeAttribute(Array(path.utf8)) else {
      throw CommandLine.UsageError("'\(path)' looks like an attribute; if it is the name of a file, write './\(path)'")
    }
    return path
  }

  /// Runs `body` and turns a failed system call into an ``Ending``, by default with the status for files.
  static func withFileFailures<Outcome: ~Copyable>(
    status: Int32 = ExitStatus.fileFailed, _ body: () throws -> Outcome
  ) throws -> Outcome {
    do {
      return try body()
    } catch let error as SystemError {
      throw Ending(status: status, text: "\(error)")
    }
  }
}
