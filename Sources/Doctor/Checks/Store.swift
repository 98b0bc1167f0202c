import IdentityWire
import LinuxSystem

/// The state of the store, and the files that were set aside in its folder.
struct StoreFacts: Sendable {
  let examination: Examination
  /// The length of the database in bytes; nil if it may not be examined.
  var size: Int64?
  /// The names of the files that the daemon set aside.
  var setAside: [String] = []
  /// The names of the files that a running daemon needs, and that are missing.
  var missing: [String] = []
}

extension StoreFacts {
  /// Gathers the facts.
  init(_ examination: Examination) {
    self.examination = examination
    guard let folder = examination.stateDirectory else { return }
    size = ((try? PathStatus.of("\(folder)/identityd.db")) ?? nil)?.size
    let names = (try? ConfigurationAccess.names(in: folder)) ?? nil
    setAside = (names ?? []).filter { name in Self.isSetAside(name) }
    guard let names else { return }
    let needed = Self.needed + (examination.answers?["master-key"] == "file" ? ["master.key"] : [])
    missing = needed.filter { !names.contains($0) }
  }

  /// The files that exist as long as the store is in order (identityd(8), THE STATE DIRECTORY).
  private static let needed = ["identityd.db", "identityd.db-wal", "store.key"]

  /// Returns whether nothing is to be done about a condition. A large store is checked for a moment after each start.
  static func isInOrder(_ condition: String) -> Bool { ["ok", "checking"].contains(condition) }

  /// Returns whether a name is that of a file that the daemon set aside (identityd(8), THE STATE DIRECTORY).
  static func isSetAside(_ name: String) -> Bool {
    let parts = name.split(separator: ".")
    return parts.last?.hasPrefix("damaged-") == true
  }

  /// The judgement of the facts.
  var finding: Finding {
    guard let answers = examination.answers, let state = answers["store"] else {
      return Finding(skipped: Examination.unreached)
    }
    var found: [Finding.Fault] = []
    let isInOrder = Self.isInOrder(state)
    if !isInOrder { found.append(fault(state, answers["store-reason"] ?? "the store is not in order")) }
    if isInOrder, !missing.isEmpty { found.append(missingFault) }
    if answers["sealed"] == "yes" {
      found.append(
        .warning(
          "the store is sealed for a golden image: every identifier has ended, and the next start begins a new store",
          examination.restart
        ).causing(.manifestsIgnored))
    }
    if let reason = answers[StatusRow.provisionReason.name] {
      found.append(
        .warning(
          "the credentials for the first start were not applied: \(reason). After a correction, the command tries again "
            + "unless something is stored by now; then only a first start after \(examination.client.named("seal")) does",
          examination.restart))
    }
    if !setAside.isEmpty, isInOrder, let folder = examination.stateDirectory {
      let paths = setAside.map { "\(folder)/\($0)" }
      found.append(
        .warning(
          "files that were set aside as damaged are still there, for examination only: \(list(setAside))",
          .command(asRoot: examination.isSystem, ["rm"] + paths)))
    }
    return Finding(
      found,
      facts: facts(
        ("state", state), ("reason", answers["store-reason"]), ("directory", examination.stateDirectory),
        ("size", size.map { "\($0)" })) + [Finding.Fact("set-aside", list: setAside)])
  }

  private func list(_ names: [String]) -> String { names.joined(separator: " ") }

  private func fault(_ state: String, _ reason: String) -> Finding.Fault {
    let folder = examination.stateDirectory ?? Examination.systemStateDirectory
    let fault: Finding.Fault
    switch state {
    case "no-space":
      fault = .failure("\(reason); the next change then rewrites the store", .anybody("df", "-h", folder))
    case "read-only": fault = .failure(reason, .root("journalctl", "--dmesg", "--priority=warning"))
    case "read-error":
      fault = .failure(reason, .root("journalctl", "--dmesg", "--priority=warning"), examination.restart)
        .causing(.itemsUnavailable, .peersUnknown)
    default:
      let isKey = reason.contains("store.key")
      fault = restore(isKey ? "store.key" : nil, reason, folder).causing(.itemsUnavailable, .peersUnknown)
    }
    return fault.being(.storeFails).causing(.manifestsIgnored, .fleetStops)
  }

  /// The fault of files that were deleted under the daemon, which still has their content and writes them anew (identityd(8),
  /// When the store is not in order).
  private var missingFault: Finding.Fault {
    let folder = examination.stateDirectory ?? Examination.systemStateDirectory
    return .failure(
      "deleted from \(folder) while the daemon runs: \(list(missing)); do not restart the daemon, which still has the "
        + "content and writes it anew within seconds",
      .chain([.anybody("sleep", "3"), examination.client.remedy("check")]))
  }

  /// The explanation of the placeholder in the commands that restore a copy.
  static let placeholder = "a copy of the state directory, whose path takes the place of COPY,"

  /// Returns the fault with the commands that restore a copy (identityd(8), Backup and restore).
  ///
  /// They are one line, and begin with the copying: nothing happens while the placeholder is there, and a daemon that
  /// started without the copy would begin a new store.
  ///
  /// - Parameter file: The file to restore; nil for the whole state directory.
  private func restore(_ file: String?, _ reason: String, _ folder: String) -> Finding.Fault {
    func step(_ words: String...) -> Remedy { .command(asRoot: examination.isSystem, words) }
    if let file {
      let mend = [step("cp", "-a", "COPY/\(file)", "\(folder)/\(file)"), examination.restart]
      return .failure("\(reason); \(Self.placeholder) has it", .chain(mend))
    }
    let manager = examination.manager
    let start = manager.map { [$0.startUnits] } ?? []
    // Both names may be those of an earlier attempt.
    let next = "\(folder).next"
    let steps = [
      step("rm", "-rf", next), step("cp", "-aT", "COPY", next), manager?.stopUnits ?? examination.restart,
      step("mv", "--backup=numbered", "-T", folder, "\(folder).damaged"), step("mv", "-T", next, folder),
    ]
    let cause =
      "\(reason); \(Self.placeholder) brings back its identifiers and items, but those made since are lost. Without a "
      + "copy, see 'Backup and restore' in identityd(8)"
    return .failure(cause, .chain(steps + start))
  }
}
