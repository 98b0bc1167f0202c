import LinuxSystem

/// The judgement of a service about its own configuration files, from its option `--check-config`.
struct ConfigurationVerdict: Sendable {
  /// The reason why the service refuses the configuration; nil if it accepts it.
  var refusal: String?
  /// The warnings, such as about an unknown setting.
  var warnings: [String] = []
  /// The reason why there is no judgement.
  var reason: String?

  /// The exit status of a refused configuration (identityd(8) and identity-fleet(8), EXIT STATUS).
  private static let refused: Int32 = 78

  /// Runs a program.
  ///
  /// - Parameters:
  ///   - manager: The service manager of the service, in whose environment the program runs.
  ///   - userID: The user who runs it.
  init(of program: String, _ options: [String] = [], under manager: ServiceManager, asUser userID: UInt32) {
    do throws(ChildProcess.Failure) {
      let outcome = try ChildProcess.run(
        [program, "--check-config"] + options, reading: .standardError, passing: manager.variables,
        until: Examination.deadline)
      self = Self(
        of: program, outcome.status, String(decoding: outcome.output, as: UTF8.self), forRoot: userID == 0)
    } catch {
      reason = "\(program): \(error)"
    }
  }

  /// Judges the exit status and the messages of a program.
  ///
  /// - Parameter isRoot: whether root ran it. Other users may not be able to read a file that the service can read.
  init(of program: String, _ status: Int32, _ messages: String, forRoot isRoot: Bool) {
    let name = program.split(separator: "/").last ?? ""
    let (refusalMark, warningMark) = ("\(name): err: configuration refused: ", "\(name): warning: ")
    for line in messages.split(separator: "\n") {
      if line.hasPrefix(refusalMark) { refusal = String(line.dropFirst(refusalMark.utf8.count)) }
      if line.hasPrefix(warningMark) { warnings.append(String(line.dropFirst(warningMark.utf8.count))) }
    }
    if status == Self.refused, refusal == nil { refusal = "the daemon gives no reason" }
    if !isRoot, let text = refusal, text.hasSuffix(SystemError.text(of: SystemError.accessDenied)) {
      (refusal, reason) = (nil, "\(text); run the check as root")
    }
    if status != 0, status != Self.refused { reason = "'\(program) --check-config' ended with status \(status)" }
  }
}
