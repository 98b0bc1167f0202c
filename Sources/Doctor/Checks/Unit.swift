import LinuxSystem

/// The state of the units, as systemd reports it.
struct UnitFacts: Sendable {
  /// The properties of each unit, by the name of the unit.
  var units: [String: [String: String]] = [:]
  /// The reason why systemd was not asked, or did not answer.
  var reason: String?

  static let socket = "identityd.socket"
  static let service = "identityd.service"
}

extension UnitFacts {
  private static let program = "/usr/bin/systemctl"
  private static let properties = "Id,LoadState,ActiveState,SubState,Result,UnitFileState,NeedDaemonReload,NRestarts"

  /// Gathers the facts.
  init(_ examination: Examination) {
    guard examination.isSystem else {
      reason = "the socket is not that of identityd.socket"
      return
    }
    // The test of sd_booted(3).
    guard ((try? PathStatus.of("/run/systemd/system")) ?? nil)?.kind == .folder else {
      reason = "systemd does not run here"
      return
    }
    do throws(ChildProcess.Failure) {
      let outcome = try ChildProcess.run(
        [Self.program, "show", "--property=\(Self.properties)", Self.socket, Self.service],
        until: Examination.deadline)
      let text = String(decoding: outcome.output, as: UTF8.self)
      if outcome.status == 0 {
        units = Self.parse(text)
      } else {
        reason = "systemctl failed with status \(outcome.status)"
      }
    } catch {
      reason = "\(Self.program): \(error)"
    }
  }

  /// Parses the output of `systemctl show`: a line per property, and an empty line between units.
  static func parse(_ text: String) -> [String: [String: String]] {
    var units: [String: [String: String]] = [:]
    var unit: [String: String] = [:]
    for line in (text + "\n").split(separator: "\n", omittingEmptySubsequences: false) {
      if let mark = line.firstIndex(of: "=") {
        unit[String(line[..<mark])] = String(line[line.index(after: mark)...])
      } else {
        if let name = unit["Id"] { units[name] = unit }
        unit = [:]
      }
    }
    return units
  }

  /// The judgement of the facts.
  var finding: Finding {
    if let reason { return Finding(skipped: reason) }
    let socket = units[Self.socket] ?? [:]
    let service = units[Self.service] ?? [:]
    return Finding(
      Self.faults(socket, service),
      facts: facts(
        ("socket", socket["ActiveState"]), ("socket-enabled", socket["UnitFileState"]),
        ("service", service["ActiveState"]), ("service-enabled", service["UnitFileState"])))
  }

  /// Returns whether a unit has failed, or waits for the next of many starts.
  private static func isFailing(_ unit: [String: String]) -> Bool {
    if unit["SubState"]?.hasPrefix("auto-restart") == true { return true }
    return unit["ActiveState"] == "failed" || unit["ActiveState"] == "activating" && unit["NRestarts"] != "0"
  }

  private static func faults(_ socket: [String: String], _ service: [String: String]) -> [Finding.Fault] {
    let both = [(Self.socket, socket), (Self.service, service)]
    for (name, unit) in both where unit["LoadState"] != "loaded" {
      if unit["LoadState"] == "masked" {
        // A mask that lasts until the next boot is in another folder, which `unmask` ignores without `--runtime`.
        let unmask = ["systemctl", "unmask"] + (unit["UnitFileState"] == "masked-runtime" ? ["--runtime"] : [])
        return [
          .failure(
            "\(name) is masked", .command(asRoot: true, unmask + [Self.socket, Self.service]),
            .root("systemctl", "start", Self.socket))
        ]
      }
      let state = unit["LoadState"] ?? "unknown"
      return [
        .failure("\(name) is not loaded: \(state)", .root("apt-get", "install", "--reinstall", "identityd"))
      ]
    }
    if let (name, unit) = both.first(where: { isFailing($0.1) }) {
      return [
        .failure(
          "\(name) has failed (\(unit["Result"] ?? "")); see 'journalctl --unit=\(Self.service)'",
          .root("systemctl", "reset-failed", Self.socket, Self.service),
          .root("systemctl", "start", Self.socket, Self.service))
      ]
    }
    if socket["ActiveState"] != "active" {
      let state = socket["ActiveState"] ?? "unknown"
      return [.failure("\(Self.socket) is \(state)", .root("systemctl", "start", Self.socket))]
    }
    var warnings: [Finding.Fault] = []
    for (name, unit) in both where !["enabled", "enabled-runtime"].contains(unit["UnitFileState"]) {
      let state = unit["UnitFileState"] ?? "unknown"
      warnings.append(
        .warning("\(name) is not started at boot: \(state)", .root("systemctl", "enable", name)))
    }
    if both.contains(where: { $0.1["NeedDaemonReload"] == "yes" }) {
      warnings.append(
        .warning("a unit file was changed, but systemd has not reloaded it", .root("systemctl", "daemon-reload")))
    }
    return warnings
  }
}
