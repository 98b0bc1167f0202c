import LinuxSystem

/// The identity of this process as the daemon sees it.
struct PeerFacts: Sendable {
  /// The user ID of this process in its own user namespace.
  let userID: UInt32
  /// The daemon's answers; nil if the daemon was not reached.
  let answers: DaemonAnswers?
  /// The reason why the daemon refused the connection of this process; nil if it did not.
  let denial: String?
  /// The remedy that restarts the daemon.
  let restart: Remedy
  /// The remedy that mounts control groups where this process sees none.
  let mount: [Remedy]

  /// Gathers the facts from the daemon's answers.
  init(_ examination: Examination) {
    userID = examination.userID
    answers = examination.answers
    denial = if case .denied(let reason) = examination.contact { reason } else { nil }
    restart = examination.restart
    mount = Self.missingMounts
  }

  /// Returns the commands that mount control groups, if none are mounted.
  private static var missingMounts: [Remedy] {
    guard !ControlGroups.areMounted else { return [] }
    let folder = (try? PathStatus.of(ControlGroups.folder)) ?? nil
    let groups = Remedy.root("mount", "-t", "cgroup2", "cgroup2", ControlGroups.folder)
    return folder?.kind == .folder ? [groups] : [.root("mount", "-t", "sysfs", "sysfs", "/sys"), groups]
  }

  /// The judgement of the facts.
  var finding: Finding {
    if let denial {
      let cause = "the daemon refused the caller: \(denial)"
      return Finding([.failure(cause, mend: mount.isEmpty ? [restart] : mount).being(.peersUnknown)])
    }
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
