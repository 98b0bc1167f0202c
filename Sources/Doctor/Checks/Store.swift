import LinuxSystem

/// The state of the store, and the files that were set aside in its folder.
struct StoreFacts: Sendable {
  let examination: Examination
  /// The length of the database in bytes; nil if it may not be examined.
  var size: Int64?
  /// The names of the files that the daemon set aside.
  var setAside: [String] = []
}

extension StoreFacts {
  /// Gathers the facts.
  init(_ examination: Examination) {
    self.examination = examination
    guard let folder = examination.stateDirectory else { return }
    size = ((try? PathStatus.of("\(folder)/identityd.db")) ?? nil)?.size
    let names = (try? ConfigurationAccess.names(in: folder)) ?? nil
    setAside = (names ?? []).filter { name in Self.isSetAside(name) }
  }

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
    if state != "ok" { found.append(fault(state, answers["store-reason"] ?? "the store is not in order")) }
    if answers["sealed"] == "yes" {
      found.append(
        .warning(
          "the store is sealed for a golden image; the next start begins a new store", examination.restart))
    }
    if !setAside.isEmpty, state == "ok", let folder = examination.stateDirectory {
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
        ("size", size.map { "\($0)" }), ("set-aside", setAside.isEmpty ? nil : list(setAside))))
  }

  private func list(_ names: [String]) -> String { names.joined(separator: " ") }

  private func fault(_ state: String, _ reason: String) -> Finding.Fault {
    let folder = examination.stateDirectory ?? Examination.systemStateDirectory
    switch state {
    case "no-space":
      return .failure("\(reason); the next change then rewrites the store", .anybody("df", "-h", folder))
    case "read-only", "read-error": return .failure(reason, .root("journalctl", "--dmesg", "--priority=warning"))
    default:
      if reason.contains("store.key") { return restore("store.key", reason, folder) }
      return restore(nil, reason, folder)
    }
  }

  /// Returns the fault with the commands that restore a copy (identityd(8), Backup and restore).
  ///
  /// - Parameter file: The file to restore; nil for the whole state directory.
  private func restore(_ file: String?, _ reason: String, _ folder: String) -> Finding.Fault {
    let isSystem = examination.isSystem
    let stop: Remedy =
      isSystem ? .root("systemctl", "stop", "identityd.socket", "identityd.service") : examination.restart
    var mend = [stop]
    if let file {
      mend.append(.command(asRoot: isSystem, ["cp", "-a", "COPY/\(file)", "\(folder)/\(file)"]))
    } else {
      mend.append(.command(asRoot: isSystem, ["mv", folder, "\(folder).damaged"]))
      mend.append(.command(asRoot: isSystem, ["cp", "-a", "COPY", folder]))
    }
    if isSystem { mend.append(.root("systemctl", "start", "identityd.socket", "identityd.service")) }
    return Finding.Fault(isWarning: false, cause: reason, mend: mend)
  }
}
