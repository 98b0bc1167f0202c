/// The location of the master key of the items.
struct MasterKeyFacts: Sendable {
  /// The row `master-key` of `status`; nil if the daemon was not reached.
  var source: String?
  /// The row `master-key-reason` of `status`, which exists only if the key is unavailable.
  var reason: String?
  /// Whether the store has a recovery key.
  var hasRecoveryKey = false
  /// Whether there are items without a backup and without a recovery key.
  var isWithoutCopy = false
  let examination: Examination

  /// Gathers the facts from the daemon's answers.
  init(_ examination: Examination) {
    self.examination = examination
    source = examination.answers?["master-key"]
    reason = examination.answers?["master-key-reason"]
    guard let answers = examination.answers, answers.hasAllRows else { return }
    hasRecoveryKey = answers["recovery-key"] != nil
    isWithoutCopy = !hasRecoveryKey && answers["last-backup"] == nil && (answers["items"] ?? "0") != "0"
  }

  /// The judgement of the facts.
  var finding: Finding {
    guard let source else { return Finding(skipped: Examination.unreached) }
    let facts = facts(("source", source), ("reason", reason))
    switch source {
    // The machine that decrypts the credential may break, or its host key may be deleted.
    case "credential" where isWithoutCopy && examination.isSystem:
      let cause =
        "there is neither a backup nor a recovery key: if the host key of systemd or the TPM2 is lost, so are the items. "
        + "'identityctl backup' makes a backup"
      return Finding([.warning(cause, .root("identityd-setup-key", "--new-recovery-key"))], facts: facts)
    case "credential": return Finding(facts: facts)
    // A daemon that was started by hand has no service manager to hand over a credential.
    case "file" where !examination.isSystem: return Finding(facts: facts)
    case "file":
      let cause =
        "the master key of the items is a file in the state directory: a copy of the directory reveals the items"
      return Finding([.info(cause, .root("identityd-setup-key"))], facts: facts)
    default: return Finding([unavailable.being(.itemsUnavailable)], facts: facts)
    }
  }

  /// The way to the items if their master key does not come back.
  private var recovery: String {
    hasRecoveryKey
      ? ". If the key is lost, 'identityd-setup-key --recover' opens the items with the recovery key" : ""
  }

  private var unavailable: Finding.Fault {
    let cause = reason ?? "the master key of the items is missing"
    if cause.hasSuffix("from master.key"), let folder = examination.stateDirectory {
      let copy = Remedy.command(asRoot: examination.isSystem, ["cp", "-a", "COPY/master.key", "\(folder)/master.key"])
      return .failure(
        "\(cause); \(StoreFacts.placeholder) brings it back", .chain([copy, examination.restart]))
    }
    guard examination.isSystem, cause.contains("credential") else { return .failure(cause, examination.restart) }
    if examination.units.isHostKeyForeign {
      // After a restart alone, the service manager would still know the machine-id of its start.
      return .failure(
        "\(cause). The host key of systemd belongs to another machine-id, under which systemd would delete it, so the "
          + "credential is not loaded; see 'systemctl status identityd-host-key.service'. Restore the former "
          + "machine-id in /etc/machine-id, then run the commands; 'identityctl machine compare' tests a "
          + "machine-id\(recovery)",
        .root("systemctl", "daemon-reexec"),
        .root("systemctl", "restart", "identityd-key.service", "identityd.service"))
    }
    return .failure(
      "\(cause); see 'systemctl status identityd-key.service'\(recovery)",
      .root("systemctl", "restart", "identityd-key.service", "identityd.service"))
  }
}
