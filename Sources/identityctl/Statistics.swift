import ClientFormats
import IdentityClient
import IdentityWire
import LinuxSystem

// `stats` and `check` with `--openmetrics` or `--prometheus`: metrics for monitoring, on standard output or in a file.
extension Program {
  /// The requested metric format; nil for the usual output of the command.
  static func metricFormat(_ line: CommandLine) throws(CommandLine.UsageError) -> MetricText.Format? {
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
      throw CommandLine.UsageError("'\(line.words[0])' takes no words with '--openmetrics' or '--prometheus'")
    }
    for other in ["json", "format"] where line.options[other] != nil {
      throw CommandLine.UsageError("'--\(other)' cannot be combined with '--openmetrics' or '--prometheus'")
    }
    return isOpen ? .openMetrics : .prometheus
  }

  /// Opens the folder of the file of `--output`; nil without that option.
  static func metricFile(_ line: CommandLine) throws -> FileReplacement? {
    try line.options["output"].map { path in
      try withFileFailures(status: ExitStatus.cannotCreate) {
        try FileReplacement(of: path, followsLinksOfOthers: false)
      }
    }
  }

  /// Writes metrics to a file, or without one to standard output.
  ///
  /// - Returns: false if standard output takes no more.
  static func write(
    _ samples: [MetricSample], as format: MetricText.Format, to file: FileReplacement?, _ line: CommandLine
  ) throws -> Bool {
    let text = MetricText(format).text(samples)
    guard let file else { return line.options["quiet"] != nil || StandardStream.output.write(text) }
    try publish(Array(text.utf8), in: file)
    return true
  }

  /// Replaces a file that programs of other users read.
  static func publish(_ bytes: [UInt8], in file: FileReplacement) throws {
    try withFileFailures(status: ExitStatus.cannotCreate) {
      try SignalWatch.run(SignalWatch.ending, leave: { file.discard() }) {
        let draft = try file.begin(mode: 0o644)
        defer { file.discard() }
        try draft.writeAll(bytes)
        try file.finish(draft)
      }
    }
  }

  /// Shows the counters and measurements of the daemon.
  static func showStatistics(_ line: CommandLine) throws -> Int32 {
    guard let format = try metricFormat(line) else { return try ask(line) }
    let file = try metricFile(line)
    let patience = try patience(line)
    var connection = try connect(line, patience)
    let answer = try connection.ask(RequestLine(words: ["stats"]), patience)
    if case .error(let code, let text) = answer.final {
      return fail(code, text, line)
    }
    // Skips metrics of a later daemon that this client does not know.
    let samples = answer.rows.compactMap { MetricSample($0) }
    if !samples.contains(where: { $0.metric.audience != .everybody }) {
      complain(
        "this user may see only the metrics of the daemon's health; to see all metrics, join the group of MonitorGroup= in identityd.conf(5)",
        line)
    }
    guard try write(samples, as: format, to: file, line) else { return ExitStatus.outputFailed }
    return status(of: answer.final)
  }
}
