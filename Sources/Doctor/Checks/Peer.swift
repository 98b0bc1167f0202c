/// Who the daemon takes this process for.
struct PeerFacts: Sendable {
  /// Who this process takes itself for.
  let userID: UInt32
  /// The daemon's word; nil where it was not reached.
  let answers: DaemonAnswers?
  /// What makes the daemon begin anew.
  let restart: Remedy

  /// Takes what the daemon said.
  init(_ examination: Examination) {
    userID = examination.userID
    answers = examination.answers
    restart = examination.restart
  }

  /// What that means.
  var finding: Finding {
    guard let answers else { return Finding(skipped: Examination.unreached) }
    let app = answers.app
    let facts = facts(
      ("app", app), ("uid", answers.peer["uid"]), ("unit", answers.peer["unit"]), ("vendor", answers.peer["vendor"]),
      ("admin", answers.peer["admin"]), ("manifest", app.flatMap { answers.hasManifest == true ? "\($0).app" : nil }))
    guard app != nil, let seen = answers.peer["uid"] else {
      return Finding(
        [.failure("the daemon does not say who asks: \(answers.refusal ?? "the answer has no user")", restart)],
        facts: facts)
    }
    guard seen != "\(userID)" else { return Finding(facts: facts) }
    let cause = "this is uid \(userID) here and uid \(seen) to the daemon: it runs in a user namespace of its own"
    return Finding([.warning(cause, .anybody("lsns", "--type=user"))], facts: facts)
  }
}
