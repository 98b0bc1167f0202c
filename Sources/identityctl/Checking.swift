import ClientFormats
import Doctor
import IdentityClient
import IdentityWire
import LinuxSystem

// `check` without a VALUE: whether the installation is in order, and the repair for each fault.
extension Program {
  /// Runs all checks and writes the report, or the number of findings as a metric. With a VALUE, asks the daemon.
  static func check(_ line: CommandLine) throws -> Int32 {
    let format = try metricFormat(line)
    guard line.words.count == 1 else { return try ask(line) }
    let file = try metricFile(line)
    let report = Check.examine(try socket(line))
    if let format {
      let severities: [Finding.Result] = [.failed, .warning]
      let samples = severities.map { MetricSample(.checkFindings, report.count(of: $0), $0.rawValue) }
      guard try write(samples, as: format, to: file, line) else { return ExitStatus.outputFailed }
    } else if line.options["quiet"] == nil {
      let layout = HelpLayout(width: min(width(of: .output), WindowSize.usualColumns))
      let text =
        try line.options["json"] == nil
        ? report.text(isColoured: isColoured(line, .output)) { layout.wrapped($0, next: 4) } : report.json
      guard show(text, line) else { return ExitStatus.outputFailed }
    }
    return report.isGood ? ExitStatus.success : ExitStatus.checkFailed
  }
}
