import ClientFormats
import IdentityClient
import IdentityWire
import LinuxSystem

// `stats` with `--openmetrics` or `--prometheus`: metrics for monitoring, on standard output or in a file.
extension Program {
  /// The requested metric format. Nil for the rows of a plain `stats`.
  private static func metricFormat(_ line: CommandLine) throws(CommandLine.UsageError) -> MetricText.Format? {
    let isOpen = line.options["openmetrics"] != nil
    let isPrometheus = line.options["prometheus"] != nil
    guard isOpen || isPrometheus else {
      guard line.options["output"] == nil else {
        throw CommandLine.UsageError("option '--output' requires '--openmetrics' or '--prometheus'")
      }
      return nil
    }
    guard !(isOpen && isPrometheus) else {
      throw CommandLine.UsageError("'--openmetrics' cannot be combined with '--prometheus'")
    }
    guard line.words.count == 1 else {
      throw CommandLine.UsageError("'stats' takes no words with '--openmetrics' or '--prometheus'")
    }
    for other in ["json", "format"] where line.options[other] != nil {
      throw CommandLine.UsageError("'--\(other)' cannot be combined with '--openmetrics' or '--prometheus'")
    }
    return isOpen ? .openMetrics : .prometheus
  }

  /// Shows the counters and measurements of the daemon.
  static func showStatistics(_ line: CommandLine) throws -> Int32 {
    guard let format = try metricFormat(line) else { return try ask(line) }
    let file = try line.options["output"].map { path in try withFileFailures { try FileReplacement(of: path) } }
    var connection = try DaemonConnection(to: DaemonSocket(line.options["socket"]))
    let answer = try connection.ask(RequestLine(words: ["stats"]))
    if case .error(let code, let text) = answer.final {
      complain("\(text) (\(code))")
      return status(of: answer.final)
    }
    // Skips metrics of a later daemon that this client does not know.
    let samples = answer.rows.compactMap { MetricSample($0) }
    if !samples.contains(where: { $0.metric.audience != .everybody }) {
      complain(
        "this user may see only the metrics of the daemon's health; to see all metrics, join the group of MonitorGroup= in identityd.conf(5)"
      )
    }
    let text = MetricText(format).text(samples)
    if let file {
      try withFileFailures {
        try SignalWatch.run(SignalWatch.ending, leave: { file.discard() }) {
          // The collector runs as another user.
          let draft = try file.begin(mode: 0o644)
          defer { file.discard() }
          try draft.writeAll(Array(text.utf8))
          try file.finish(draft)
        }
      }
    } else if line.options["quiet"] == nil {
      guard StandardStream.output.write(text) else { return ExitStatus.outputFailed }
    }
    return status(of: answer.final)
  }
}
