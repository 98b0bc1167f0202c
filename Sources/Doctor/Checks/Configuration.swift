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
  /// Whether the files belong to root.
  var asRoot = true
  /// The remedies that follow a change of the configuration.
  var resume: [Remedy] = []
}

extension ConfigurationFacts {
  private static let program = Remedy.daemon

  /// Gathers the facts.
  init(_ examination: Examination) {
    resume = examination.resume
    guard let manager = examination.manager else {
      reason = "the daemon was not started by a unit"
      return
    }
    asRoot = manager == .system
    guard ((try? PathStatus.of(Self.program)) ?? nil) != nil else {
      reason = "\(Self.program) does not exist"
      return
    }
    files = Self.existing(in: manager.configurationFolder)
    // The option makes the daemon of any user read the system's files.
    let options = asRoot ? ["--state-directory=\(Examination.systemStateDirectory)"] : []
    use(ConfigurationVerdict(of: Self.program, options, under: manager, asUser: examination.userID))
  }

  private static func existing(in directory: String) -> [String] {
    let folder = "\(directory)/identityd.conf.d"
    let names = (try? ConfigurationAccess.names(in: folder)) ?? nil
    let parts = (names ?? []).filter { $0.hasSuffix(".conf") && !$0.hasPrefix(".") }.map { "\(folder)/\($0)" }
    let main = "\(directory)/identityd.conf"
    return ((try? PathStatus.of(main)) ?? nil) == nil && !parts.isEmpty ? parts : [main] + parts
  }

  /// Takes the facts from the exit status and the messages of `identityd --check-config`.
  ///
  /// - Parameter isRoot: whether root ran it. Other users may not be able to read a file that the daemon can read.
  mutating func judge(_ status: Int32, _ messages: String, forRoot isRoot: Bool) {
    use(ConfigurationVerdict(of: Self.program, status, messages, forRoot: isRoot))
  }

  private mutating func use(_ verdict: ConfigurationVerdict) {
    (refusal, warnings, reason) = (verdict.refusal, verdict.warnings, verdict.reason)
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
    .edit(asRoot: asRoot, file(in: text, endingWith: ".conf").map { [$0] } ?? files)
  }
}
