import Doctor
import IdentityClient
import LinuxSystem

// `check` without a VALUE: whether the installation is in order, and the repair for each fault.
extension Program {
  /// Runs all checks and writes the report.
  static func examine(_ line: CommandLine) -> Int32 {
    let report = Check.examine(DaemonSocket(line.options["socket"]))
    if line.options["quiet"] == nil {
      let text = line.options["json"] == nil ? report.text : report.json
      guard StandardStream.output.write(text) else { return ExitStatus.outputFailed }
    }
    return report.isGood ? ExitStatus.success : ExitStatus.checkFailed
  }
}
