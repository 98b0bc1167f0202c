import LinuxSystem

/// The states of the units, and the user that they need.
struct UnitFacts: Sendable {
  /// The states of the units.
  let states: UnitStates
  /// The service manager of the units.
  var manager = ServiceManager.system
  /// Whether the user that the service runs as exists.
  var hasUser = true
  /// The state of the daemon's program.
  var program = Program.executable

  /// The states of the daemon's program.
  enum Program: Sendable {
    case executable, missing, notExecutable
  }
}

extension UnitFacts {
  private static let socket = UnitStates.socket
  private static let service = UnitStates.service
  /// The user that the service runs as.
  private static let user = "identityd"

  /// Gathers the facts.
  init(_ examination: Examination) {
    states = examination.units
    manager = examination.manager ?? .system
    // A name service that cannot answer is no proof that the user is missing.
    if manager == .system { do { hasUser = try Accounts.userID(named: Self.user) != nil } catch {} }
    // A program that this user may not look at is no proof that it is missing.
    do {
      if let status = try PathStatus.of(Remedy.daemon) {
        program = status.kind == .regular && status.mode & 0o111 == 0o111 ? .executable : .notExecutable
      } else {
        program = .missing
      }
    } catch {}
  }

  /// The judgement of the facts.
  var finding: Finding {
    if let reason = states.reason { return Finding(skipped: reason) }
    return Finding(
      faults,
      facts: facts(
        ("socket", states.socket["ActiveState"]), ("socket-enabled", states.socket["UnitFileState"]),
        ("service", states.service["ActiveState"]), ("service-enabled", states.service["UnitFileState"]),
        ("restarts", states.service["NRestarts"]), ("last-end", states.lastEnd)))
  }

  private var faults: [Finding.Fault] {
    let both = [(Self.socket, states.socket), (Self.service, states.service)]
    for (name, unit) in both where unit["LoadState"] != "loaded" {
      return [unloaded(name, unit).causing(.unreachable)]
    }
    return missingUser + missingProgram + stopped(both).map { $0.causing(.unreachable) } + warnings(both)
  }

  private func unloaded(_ name: String, _ unit: [String: String]) -> Finding.Fault {
    guard unit["LoadState"] == "masked" else {
      let state = unit["LoadState"] ?? "unknown"
      return .failure("\(name) is not loaded: \(state)", .reinstall)
    }
    // A mask that lasts until the next boot is in another folder, which `unmask` ignores without `--runtime`.
    let unmask = ["unmask"] + (unit["UnitFileState"] == "masked-runtime" ? ["--runtime"] : [])
    return .failure(
      "\(name) is masked", manager.remedy(unmask + [Self.socket, Self.service]), manager.remedy("start", Self.socket))
  }

  private var missingUser: [Finding.Fault] {
    if hasUser { return [] }
    let fault = Finding.Fault.failure(
      "the user \(Self.user), which \(Self.service) runs as, does not exist", .root("systemd-sysusers"),
      manager.resetUnits, manager.restartUnits)
    return [fault.causing(.serviceFails, .unreachable)]
  }

  private var missingProgram: [Finding.Fault] {
    guard program != .executable else { return [] }
    let cause = "\(Remedy.daemon) \(program == .missing ? "does not exist" : "is not executable for every user")"
    let mend = [Remedy.reinstall, manager.resetUnits, manager.restartUnits]
    return [.failure(cause, mend: mend).causing(.serviceFails, .unreachable)]
  }

  /// Returns the fault of a unit that does not run as it should; none if both do.
  private func stopped(_ both: [(name: String, unit: [String: String])]) -> [Finding.Fault] {
    let end = states.lastEnd.map { ": \($0)" } ?? ""
    let log = "see \(manager.journal(of: Self.service))"
    if states.isLooping {
      let fault = Finding.Fault.failure(
        "\(Self.service) ends and is restarted again and again, \(states.restarts) times so far\(end); \(log)",
        manager.resetUnits, manager.restartUnits)
      return [fault.being(.serviceFails)]
    }
    if let (name, unit) = both.first(where: { $0.unit["ActiveState"] == "failed" }) {
      let fault = Finding.Fault.failure(
        "\(name) has failed (\(unit["Result"] ?? ""))\(end); \(log)", manager.resetUnits, manager.restartUnits)
      return [fault.being(.serviceFails)]
    }
    guard states.socket["ActiveState"] != "active" else { return [] }
    let state = states.socket["ActiveState"] ?? "unknown"
    return [.failure("\(Self.socket) is \(state)", manager.remedy("start", Self.socket))]
  }

  private func warnings(_ both: [(name: String, unit: [String: String])]) -> [Finding.Fault] {
    var warnings: [Finding.Fault] = []
    // A connection starts the daemon of a user, whose service cannot be enabled.
    let started = manager == .user ? both.filter { $0.name == Self.socket } : both
    for (name, unit) in started where !["enabled", "enabled-runtime"].contains(unit["UnitFileState"]) {
      let state = unit["UnitFileState"] ?? "unknown"
      let moment = manager == .user ? "login" : "boot"
      warnings.append(.warning("\(name) is not started at \(moment): \(state)", manager.remedy("enable", name)))
    }
    if both.contains(where: { $0.unit["NeedDaemonReload"] == "yes" }) {
      warnings.append(
        .warning("a unit file was changed, but systemd has not reloaded it", manager.remedy("daemon-reload")))
    }
    return warnings
  }
}

extension Remedy {
  /// The path of the daemon's program.
  static let daemon = "/usr/sbin/identityd"
  /// The command that installs the files of the package again.
  static var reinstall: Remedy {
    let hasAPT = (try? PathStatus.of("/usr/bin/apt-get")) ?? nil != nil
    return hasAPT
      ? root("apt-get", "install", "--reinstall", "identityd") : root("dnf", "reinstall", "identityd")
  }
}
