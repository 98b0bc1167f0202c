/// The identity of this process as the daemon sees it.
struct PeerFacts: Sendable {
  /// The user ID of this process in its own user namespace.
  let userID: UInt32
  /// The daemon's answers; nil if the daemon was not reached.
  let answers: DaemonAnswers?
  /// The remedy that restarts the daemon.
  let restart: Remedy

  /// Gathers the facts from the daemon's answers.
  init(_ examination: Examination) {
    userID = examination.userID
    answers = examination.answers
    restart = examination.restart
  }

  /// The judgement of the facts.
  var finding: Finding {
    guard let answers else { return Finding(skipped: Examination.unreached) }
    let app = answers.app
    let facts = facts(
      ("app", app), ("uid", answers.peer["uid"]), ("unit", answers.peer["unit"]), ("vendor", answers.peer["vendor"]),
      ("admin", answers.peer["admin"]), ("manifest", app.flatMap { answers.hasManifest == true ? "\($0).app" : nil }))
    guard app != nil, let seen = answers.peer["uid"] else {
      return Finding(
        [
          .failure("the daemon did not identify the caller: \(answers.refusal ?? "the answer names no user")", restart)
            .being(.peersUnknown)
        ], facts: facts)
    }
    guard seen != "\(userID)" else { return Finding(facts: facts) }
    let cause = "the caller is uid \(userID) here and uid \(seen) to the daemon, which runs in another user namespace"
    return Finding([.warning(cause, .anybody("lsns", "--type=user"))], facts: facts)
  }
}
