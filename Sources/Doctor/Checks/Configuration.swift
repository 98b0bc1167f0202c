import LinuxSystem

/// The daemon's own judgement of the configuration files.
struct ConfigurationFacts: Sendable {
  /// The reason why the daemon refuses the configuration; nil if it accepts it.
  var refusal: String?
  /// The warnings of the daemon, such as about an unknown setting.
  var warnings: [String] = []
  /// The reason why the daemon was not asked, or gave no judgement.
  var reason: String?
  /// The configuration files that exist, for a text that names none.
  var files: [String] = []
  /// The remedies that follow a change of the configuration.
  var resume: [Remedy] = []
}

extension ConfigurationFacts {
  private static let program = Remedy.daemon
  private static let folder = "/etc/identityd"
  private static let refusalMark = "identityd: err: configuration refused: "
  private static let warningMark = "identityd: warning: "
  /// The exit status of a refused configuration (identityd(8), EXIT STATUS).
  private static let refused: Int32 = 78

  /// Gathers the facts.
  init(_ examination: Examination) {
    resume = examination.resume
    guard examination.isSystem else {
      reason = "the socket is not that of the system's daemon"
      return
    }
    guard ((try? PathStatus.of(Self.program)) ?? nil) != nil else {
      reason = "\(Self.program) does not exist"
      return
    }
    files = Self.existing
    do throws(ChildProcess.Failure) {
      // The option makes the daemon of any user read the system's files.
      let outcome = try ChildProcess.run(
        [Self.program, "--check-config", "--state-directory=\(Examination.systemStateDirectory)"],
        reading: .standardError, until: Examination.deadline)
      judge(outcome.status, String(decoding: outcome.output, as: UTF8.self), forRoot: examination.userID == 0)
    } catch {
      reason = "\(Self.program): \(error)"
    }
  }

  private static var existing: [String] {
    let folder = "\(Self.folder)/identityd.conf.d"
    let names = (try? ConfigurationAccess.names(in: folder)) ?? nil
    let parts = (names ?? []).filter { $0.hasSuffix(".conf") && !$0.hasPrefix(".") }.map { "\(folder)/\($0)" }
    let main = "\(Self.folder)/identityd.conf"
    return ((try? PathStatus.of(main)) ?? nil) == nil && !parts.isEmpty ? parts : [main] + parts
  }

  /// Takes the facts from the exit status and the messages of `identityd --check-config`.
  ///
  /// - Parameter isRoot: whether root ran it. Other users may not be able to read a file that the daemon can read.
  mutating func judge(_ status: Int32, _ messages: String, forRoot isRoot: Bool) {
    for line in messages.split(separator: "\n") {
      if line.hasPrefix(Self.refusalMark) { refusal = String(line.dropFirst(Self.refusalMark.utf8.count)) }
      if line.hasPrefix(Self.warningMark) { warnings.append(String(line.dropFirst(Self.warningMark.utf8.count))) }
    }
    if status == Self.refused, refusal == nil { refusal = "the daemon gives no reason" }
    if !isRoot, let text = refusal, text.hasSuffix(SystemError.text(of: SystemError.accessDenied)) {
      (refusal, reason) = (nil, "\(text); run the check as root")
    }
    if status != 0, status != Self.refused {
      reason = "'\(Self.program) --check-config' ended with status \(status)"
    }
  }

  /// The judgement of the facts.
  var finding: Finding {
    var found: [Finding.Fault] = []
    if let refusal {
      let cause = "the daemon refuses the configuration, and a restart would fail: \(refusal)"
      found.append(
        .failure(cause, mend: [edit(refusal)] + resume).causing(.serviceFails))
    }
    found += warnings.map { .warning($0, mend: [edit($0)] + resume) }
    return Finding(
      found, skipped: reason,
      facts: reason == nil ? facts(("refusal", refusal), ("warnings", "\(warnings.count)")) : [])
  }

  private func edit(_ text: String) -> Remedy {
    .edit(asRoot: true, file(in: text, endingWith: ".conf").map { [$0] } ?? files)
  }
}
