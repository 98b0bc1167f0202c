import LinuxSystem

/// The states of the units, as systemd reported them at a time.
struct UnitStates: Equatable, Sendable {
  /// The properties of each unit, by the name of the unit (org.freedesktop.systemd1(5)).
  var units: [String: [String: String]] = [:]
  /// The reason why systemd was not asked, or did not answer.
  var reason: String?
  /// The time of the report on the monotonic clock, in microseconds.
  var time: UInt64 = 0

  static let socket = "identityd.socket"
  static let service = "identityd.service"
  static let fleet = "identity-fleet.service"
  static let hostKey = "identityd-host-key.service"

  /// The number of restarts in a row that count as a loop. One or two may follow from a single fault, such as a kill.
  static let restartsOfLoop = 3
  /// The time after which a daemon that was restarted counts as stable, in microseconds.
  static let stableMicroseconds: UInt64 = 60_000_000

  /// The properties of `identityd.service`; none if they are unknown.
  var service: [String: String] { units[Self.service] ?? [:] }
  /// The properties of `identityd.socket`; none if they are unknown.
  var socket: [String: String] { units[Self.socket] ?? [:] }

  /// Whether systemd's host key was found to belong to another machine-id, so that no credential is loaded.
  var isHostKeyForeign: Bool { units[Self.hostKey]?["ActiveState"] == "failed" }

  /// The number of times that systemd restarted the service since its last orderly start.
  var restarts: Int { service["NRestarts"].flatMap { Int($0) } ?? 0 }

  /// Whether the service ends and is restarted again and again.
  var isLooping: Bool {
    switch service["ActiveState"] {
    case "activating": service["SubState"]?.hasPrefix("auto-restart") == true || restarts > 0
    case "active":
      restarts >= Self.restartsOfLoop
        && (service["ActiveEnterTimestampMonotonic"].flatMap { UInt64($0) }.map { $0 + Self.stableMicroseconds > time }
          ?? false)
    default: false
    }
  }

  /// Whether the service cannot run, so that no answer of the daemon can be expected.
  var isFailing: Bool { service["ActiveState"] == "failed" || isLooping }

  /// The reason for the last end of the service; nil if it is unknown.
  var lastEnd: String? {
    guard let status = service["ExecMainStatus"] else { return nil }
    // The code of waitid(2): the process exited by itself, or a signal ended it.
    let end: String? =
      switch service["ExecMainCode"] {
      case "1": "exit status \(status)"
      case "2", "3": "signal \(status)"
      default: nil
      }
    // The daemon reports the reason for a refused start as its status.
    guard let end, let text = service["StatusText"], !text.isEmpty else { return end }
    return "\(end), \(text)"
  }
}

extension UnitStates {
  private static let program = "/usr/bin/systemctl"
  private static let properties = [
    "Id", "LoadState", "ActiveState", "SubState", "Result", "UnitFileState", "NeedDaemonReload", "NRestarts",
    "ExecMainCode", "ExecMainStatus", "StatusText", "ActiveEnterTimestampMonotonic",
  ]

  /// The number of times that a loop is asked for the reason, and the pause between two of them in microseconds. While
  /// the next daemon starts, systemd does not tell how the last one ended.
  private static let (looks, pause) = (10, UInt64(50_000))

  /// Asks systemd.
  ///
  /// - Parameter manager: the service manager that runs the daemon; nil for a daemon that was started by hand.
  init(of manager: ServiceManager?) {
    self.init()
    guard let manager else {
      reason = "the daemon was not started by a unit"
      return
    }
    // The test of sd_booted(3).
    guard ((try? PathStatus.of("/run/systemd/system")) ?? nil)?.kind == .folder else {
      reason = "systemd does not run here"
      return
    }
    for _ in 0..<Self.looks {
      ask(manager)
      guard isLooping, lastEnd == nil else { return }
      _ = try? TimedWait.wait(for: nil, until: Clock.monotonicMicroseconds + Self.pause)
    }
  }

  private mutating func ask(_ manager: ServiceManager) {
    do throws(ChildProcess.Failure) {
      let outcome = try ChildProcess.run(
        [Self.program] + manager.options + [
          "show", "--property=\(Self.properties.joined(separator: ","))", Self.socket, Self.service, Self.fleet,
          Self.hostKey,
        ],
        passing: manager.variables, until: Examination.deadline)
      time = Clock.monotonicMicroseconds
      if outcome.status == 0 {
        units = Self.parse(String(decoding: outcome.output, as: UTF8.self))
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
}
