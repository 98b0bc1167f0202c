import Foundation
import LinuxSystem

/// Measures the cost of a hostile user to another user.
///
/// Two users share one daemon. One sends a request now and then and measures the time. The other attacks at full speed,
/// in each of the ways of ``Attack/Kind``. Neither is root.
struct NeighbourBenchmark {
  private static let quietUser: UInt32 = 65_001
  private static let hostileUser: UInt32 = 65_002
  /// The first of the users that are subordinate to the hostile user.
  private static let firstSubordinate: UInt32 = 200_000
  /// The number of requests of the quiet user in each round.
  private static let requests = 300
  /// The time between the start of an attack and the measurement, in microseconds.
  private static let approach: UInt32 = 700_000
  private static let change = "item put service=quiet account=a data=c2VjcmV0"

  let options: Options
  let guardian: Guardian

  func run() throws -> [Row] {
    guard geteuid() == 0 else { throw BenchError("two users take root") }
    return try Attack.Kind.allCases.flatMap { kind in
      Program.say("attack: \(kind.rawValue)")
      return try measure(kind)
    }
  }

  /// The times of reads and of changes, in microseconds.
  private struct Times {
    var (reads, changes): ([Double], [Double]) = ([], [])

    mutating func ask(_ daemon: MeasuredServer) throws {
      reads += try QuietUser.times(quietUser, requests, "get device", at: [daemon])[0]
      changes += try QuietUser.times(quietUser, requests, change, at: [daemon])[0]
    }
  }

  private func measure(_ kind: Attack.Kind) throws -> [Row] {
    var (alone, attacked) = (Times(), Times())
    // Each round takes as long as ten rounds of other benchmarks.
    for _ in 0..<options.rounds(usual: 30, quick: 10) / 10 {
      // Each round has a new daemon, because the last one is still busy with the requests of the last attack.
      let daemon = try MeasuredServer.identityd(guardian: guardian, wrapper: try wrapper(kind))
      try daemon.start()
      try alone.ask(daemon)
      let attackers = try attack(kind, daemon)
      usleep(Self.approach)
      try attacked.ask(daemon)
      guard attackers.allSatisfy(\.isRunning) else { throw BenchError("the attack \(kind.rawValue) ended by itself") }
      // First all of them: on a busy machine, one that ends beside others that attack gets a processor late.
      for attacker in attackers { kill(attacker.processIdentifier, SIGKILL) }
      for attacker in attackers { attacker.waitUntilExit() }
      try daemon.stop()
    }
    let sides = [("read", alone.reads, attacked.reads), ("change", alone.changes, attacked.changes)]
    return sides.flatMap { name, one, other in
      [("median", 0.5), ("99th percentile", 0.99)].map { part, value in
        Row(
          "\(kind.rawValue): \(name), \(part)", "µs", ["alone", "attacked"],
          [one, other].map { [[$0.percentile(value)]] },
          base: "alone", target: name == "read" && value > 0.9 ? .atMost(kind.most, "attacked") : nil)
      }
    }
  }

  /// Starts an attack. The start of a program keeps a processor in the kernel for milliseconds, which is not the
  /// daemon's work, so all attackers have started before this returns.
  private func attack(_ kind: Attack.Kind, _ daemon: MeasuredServer) throws -> [Process] {
    let users = kind.users == 1 ? [Self.hostileUser] : (0..<kind.users).map { Self.firstSubordinate + $0 }
    let attackers = users.map { Part.process(as: $0, ["attack", kind.rawValue, daemon.socket]) }
    let outputs = attackers.map { _ in Pipe() }
    for (attacker, output) in zip(attackers, outputs) {
      attacker.standardOutput = output
      try attacker.run()
    }
    guard outputs.allSatisfy({ !$0.fileHandleForReading.availableData.isEmpty }) else {
      throw BenchError("the attack \(kind.rawValue) ended by itself")
    }
    return attackers
  }

  /// Returns the command that starts the daemon. For an attack with subordinate users, it gives the daemon its own file
  /// of subordinate users and the highest priority.
  ///
  /// 300 processes together get as much of a processor as the daemon, even under SCHED_IDLE. The daemon as a service has
  /// a control group, which gets as much as the group of all users' processes.
  private func wrapper(_ kind: Attack.Kind) throws -> [String] {
    guard kind.users > 1 else { return [] }
    let file = guardian.folder.appending(path: "subuid").path
    try Data("\(Self.hostileUser):\(Self.firstSubordinate):65536\n".utf8).write(to: URL(filePath: file))
    let script = #"mount --bind "$0" /etc/subuid && exec nice -n -20 "$@""#
    return ["/usr/bin/unshare", "--mount", "/bin/sh", "-c", script, file]
  }
}
