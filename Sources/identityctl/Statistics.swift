import ClientFormats
import IdentityClient
import IdentityWire
import LinuxSystem

// `stats` with `--openmetrics` or `--prometheus`: what monitoring reads, to standard output or into a file.
extension Program {
  /// The format that is asked for; nil for rows as any other verb has them.
  private static func metricFormat(_ line: CommandLine) throws(CommandLine.UsageError) -> MetricText.Format? {
    let isOpen = line.options["openmetrics"] != nil
    let isPrometheus = line.options["prometheus"] != nil
    guard isOpen || isPrometheus else {
      guard line.options["output"] == nil else {
        throw CommandLine.UsageError("option '--output' takes '--openmetrics' or '--prometheus' too")
      }
      return nil
    }
    guard !(isOpen && isPrometheus) else {
      throw CommandLine.UsageError("'--openmetrics' and '--prometheus' are two formats; name one")
    }
    guard line.words.count == 1 else {
      throw CommandLine.UsageError("'stats' takes no words where the output is for monitoring")
    }
    for other in ["json", "format"] where line.options[other] != nil {
      throw CommandLine.UsageError("'--\(other)' is of no use where the output is for monitoring")
    }
    return isOpen ? .openMetrics : .prometheus
  }

  /// Shows what the daemon has counted and measured.
  static func showStatistics(_ line: CommandLine) throws -> Int32 {
    guard let format = try metricFormat(line) else { return try ask(line) }
    let file = try line.options["output"].map { path in try withFileFailures { try FileReplacement(of: path) } }
    var connection = try DaemonConnection(to: DaemonSocket(line.options["socket"]))
    let answer = try connection.ask(DaemonConnection.request(["stats"]))
    if case .error(let code, let text) = answer.final {
      complain("\(text) (\(code))")
      return status(of: answer)
    }
    // What a later daemon counts besides is left out.
    let samples = answer.rows.compactMap { MetricSample($0) }
    if !samples.contains(where: { $0.metric.audience != .everybody }) {
      complain(
        "the daemon tells this user only of its health; for all figures, join the group of MonitorGroup=, see identityd.conf(5)"
      )
    }
    let text = MetricText(format).text(samples)
    if let file {
      try withFileFailures {
        try SignalWatch.run(SignalWatch.ending, leave: { file.discard() }) {
          // Whoever collects is another user.
          let draft = try file.begin(mode: 0o644)
          defer { file.discard() }
          try draft.writeAll(Array(text.utf8))
          try file.finish(draft)
        }
      }
    } else if line.options["quiet"] == nil {
      guard StandardStream.output.write(text) else { return ExitStatus.outputFailed }
    }
    return status(of: answer)
  }
}
