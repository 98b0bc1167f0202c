import IdentityCore

/// The releases of the daemon and of this program.
struct VersionFacts: Sendable {
  /// The daemon's answers; nil if the daemon was not reached.
  let answers: DaemonAnswers?
  /// The remedy that restarts the daemon.
  let restart: Remedy

  /// Gathers the facts from the daemon's answers.
  init(_ examination: Examination) {
    answers = examination.answers
    restart = examination.restart
  }

  /// The judgement of the facts.
  var finding: Finding {
    guard let answers else { return Finding(skipped: Examination.unreached) }
    let daemon = answers.hello.dropFirst().first
    let own = Version.program
    let ownProtocol = "\(Version.lineProtocol)"
    let facts = facts(
      ("daemon", daemon), ("client", own), ("protocol", answers.lineProtocol), ("client-protocol", ownProtocol))
    guard answers.hello.first == "identityd", let daemon else {
      return Finding([.failure("the process that listens there is not identityd", restart)], facts: facts)
    }
    if answers.lineProtocol != ownProtocol {
      let cause = "the daemon speaks protocol \(answers.lineProtocol), but this program speaks protocol \(ownProtocol)"
      return Finding([.failure(cause, restart)], facts: facts)
    }
    guard daemon != own else { return Finding(facts: facts) }
    return Finding(
      [.warning("the running daemon is of release \(daemon), but this program is of release \(own)", restart)],
      facts: facts)
  }
}
