/// Where the key of the items is.
struct KeyFacts: Sendable {
  /// The row `key` of `status`; nil where the daemon was not reached.
  var source: String?
  /// The row `key-reason`.
  var reason: String?
  let examination: Examination

  /// Takes what the daemon said.
  init(_ examination: Examination) {
    self.examination = examination
    source = examination.answers?["key"]
    reason = examination.answers?["key-reason"]
  }

  /// What that means.
  var finding: Finding {
    guard let source else { return Finding(skipped: Examination.unreached) }
    let facts = facts(("source", source), ("reason", reason))
    switch source {
    case "credential": return Finding(facts: facts)
    // A daemon that was started by hand has nobody to hand it another.
    case "file" where !examination.isSystem: return Finding(facts: facts)
    case "file":
      let cause = "the key of the items is a file beside them: who has a copy of the state has the items"
      return Finding([.warning(cause, .root("identityd-setup-key"))], facts: facts)
    default: return Finding([unavailable], facts: facts)
    }
  }

  private var unavailable: Finding.Fault {
    let cause = reason ?? "the key of the items is not there"
    guard cause.hasSuffix("from master.key"), let folder = examination.stateDirectory else {
      guard examination.isSystem else { return .failure(cause, examination.restart) }
      return .failure(
        "\(cause); 'systemctl status identityd-key.service' says why it is not there",
        .root("systemctl", "restart", "identityd-key.service", "identityd.service"))
    }
    return .failure(
      cause,
      .command(asRoot: examination.isSystem, ["cp", "-a", "COPY/master.key", "\(folder)/master.key"]),
      examination.restart)
  }
}
