/// The key of proofs.
struct ProofKeyFacts: Sendable {
  /// The row `proof-key` of `status`; nil if there is no key, if the caller may not see the row, or if the daemon was not
  /// reached.
  let key: String?
  /// The row `proof-key-reason` of `status`, which exists only if the key cannot sign.
  let reason: String?
  /// Whether items can be used, whose data key the proof key needs, too.
  let hasMasterKey: Bool
  let examination: Examination

  /// Gathers the facts from the daemon's answers.
  init(_ examination: Examination) {
    self.examination = examination
    key = examination.answers?["proof-key"]
    reason = examination.answers?["proof-key-reason"]
    hasMasterKey = examination.answers?["master-key"] != "unavailable"
  }

  /// The judgement of the facts. A key that is locked is no fault of its own: its machine is another one.
  var finding: Finding {
    guard examination.answers != nil else { return Finding(skipped: Examination.unreached) }
    let facts = facts(("key", key), ("reason", reason))
    // Without the master key, its own check names the way back.
    guard key == "unavailable", hasMasterKey else { return Finding(facts: facts) }
    if let reason, reason.contains("libcrypto.so.3") {
      return Finding([.warning("proofs cannot be signed: \(reason)", examination.restart)], facts: facts)
    }
    if let reason, reason.contains("--proof=software") {
      let command = Remedy.command(asRoot: true, ["identityd-setup-key", "--proof=software"])
      return Finding([.warning("proofs cannot be signed: \(reason)", command)], facts: facts)
    }
    let cause =
      "the last proof could not be signed: \(reason ?? "the reason is not known"). If the key is lost, the command makes "
      + "another one. Servers then need the new key set"
    let command = Remedy.command(
      asRoot: examination.isSystem, ["identityctl", "proof", "rotate", "revoke=yes"])
    return Finding([.warning(cause, command)], facts: facts)
  }
}
