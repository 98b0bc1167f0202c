import Foundation

/// Measures the cost of a hostile user to another user.
///
/// Two users share one daemon. One sends a request now and then and measures the time. The other attacks at full speed,
/// in each of the ways of ``Attack/Kind``. Neither is root.
struct NeighbourBenchmark {
  /// The highest allowed ratio of the 99th percentile beside an attack to that without one.
  private static let limit = 2.0
  private static let quietUser: UInt32 = 65_001
  private static let hostileUser: UInt32 = 65_002
  /// The first of the users that are subordinate to the hostile user.
  private static let firstSubordinate: UInt32 = 200_000
  /// The number of requests of the quiet user in each round.
  private static let requests = 300
  /// The time between the start of an attack and the measurement, in microseconds.
  private static let approach: UInt32 = 700_000

  /// The number of rounds for each attack. Each round takes as long as ten rounds of other benchmarks.
  private let rounds: Int
  private let guardian: Guardian

  init(options: Options, guardian: Guardian) {
    rounds = options.rounds(usual: 30, quick: 10) / 10
    self.guardian = guardian
  }

  func run() throws -> Report {
    guard geteuid() == 0 else { throw Failure("two users take root") }
    var figures: [Figure] = []
    for kind in Attack.Kind.allCases {
      Program.say("attack: \(kind.rawValue)")
      figures += try measure(kind)
    }
    return Report(
      benchmark: "neighbour", columns: Pair(usual: "alone", other: "attacked"), rounds: rounds, figures: figures
    )
  }

  private func measure(_ kind: Attack.Kind) throws -> [Figure] {
    var reads = Pair<[Double]>(usual: [], other: [])
    var changes = reads
    for _ in 0..<rounds {
      // Each round has a new daemon, because the last one is still busy with the requests of the last attack.
      let daemon = try MeasuredServer.identityd(
        settings: "[Log]\nLevel=err\n", guardian: guardian, wrapper: try wrapper(kind))
      try daemon.start()
      reads.usual += try times("get device", daemon)
      changes.usual += try times(Self.change, daemon)
      let users = kind.users == 1 ? [Self.hostileUser] : (0..<kind.users).map { Self.firstSubordinate + $0 }
      let attackers = users.map { Part.process(as: $0, "attack", daemon.socket, kind.rawValue) }
      // The start of a program keeps a CPU in the kernel for milliseconds, which is not the daemon's work. All
      // attackers have started before the measurement.
      let outputs = attackers.map { _ in Pipe() }
      for (attacker, output) in zip(attackers, outputs) {
        attacker.standardOutput = output
        try attacker.run()
        try guardian.watch(attacker.processIdentifier)
      }
      guard outputs.allSatisfy({ !$0.fileHandleForReading.availableData.isEmpty }) else {
        throw Failure("the attack \(kind.rawValue) ended by itself")
      }
      usleep(Self.approach)
      reads.other += try times("get device", daemon)
      changes.other += try times(Self.change, daemon)
      guard attackers.allSatisfy(\.isRunning) else { throw Failure("the attack \(kind.rawValue) ended by itself") }
      for attacker in attackers {
        kill(attacker.processIdentifier, SIGKILL)
        attacker.waitUntilExit()
      }
      try daemon.stop()
    }
    return [
      Figure("\(kind.rawValue): read, median", .microseconds, reads.map(\.median)),
      Figure(
        "\(kind.rawValue): read, 99th percentile", .microseconds, reads.map { $0.percentile(0.99) }, limit: Self.limit),
      Figure("\(kind.rawValue): change, median", .microseconds, changes.map(\.median)),
      Figure("\(kind.rawValue): change, 99th percentile", .microseconds, changes.map { $0.percentile(0.99) }),
    ]
  }

  /// Returns the command that starts the daemon. For an attack with subordinate users, it gives the daemon its own file
  /// of subordinate users and the highest priority.
  ///
  /// 300 processes together get as much of a CPU as the daemon, even under SCHED_IDLE. The daemon as a service has a
  /// control group, which gets as much as the group of all users' processes.
  private func wrapper(_ kind: Attack.Kind) throws -> [String] {
    guard kind.users > 1 else { return [] }
    let file = guardian.folder.appending(path: "subuid").path
    try Data("\(Self.hostileUser):\(Self.firstSubordinate):65536\n".utf8).write(to: URL(filePath: file))
    let script = #"mount --bind "$0" /etc/subuid && exec nice -n -20 "$@""#
    return ["/usr/bin/unshare", "--mount", "/bin/sh", "-c", script, file]
  }

  private static let change = "item put service=quiet account=a data=c2VjcmV0"

  private func times(_ request: String, _ daemon: MeasuredServer) throws -> [Double] {
    let user = Part.process(as: Self.quietUser, "ask", daemon.socket, "\(Self.requests)", request)
    let output = Pipe()
    user.standardOutput = output
    try user.run()
    let text = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
    user.waitUntilExit()
    let times = text.split(separator: "\n").compactMap { Double($0) }
    guard user.terminationStatus == 0, times.count == Self.requests else { throw Failure("the quiet user was refused") }
    return times
  }
}
