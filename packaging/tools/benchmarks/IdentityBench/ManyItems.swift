import Foundation
import LinuxSystem

/// A daemon with very many items: the time of its stop, and the wait of a client beside a long answer.
struct ManyItems {
  let options: Options
  let guardian: Guardian
  /// As many items as `ItemsPerApp=` allows.
  private var count: Int { options.isQuick ? 100_000 : 1_000_000 }
  private var rounds: Int { options.rounds(usual: 5, quick: 3) }

  /// Fills the daemon and measures it.
  func run() throws -> [Row] {
    let name = "\(count)"
    Program.say("filling a daemon with \(name) items")
    let settings = "[Limits]\nItemsPerApp=\(count)\nItemBytesPerApp=1G\n"
    let server = try MeasuredServer.identityd(settings: settings, guardian: guardian)
    try server.start()
    defer { server.end() }
    try server.connect().fill(count) { SampleItem($0).put }
    let connection = try server.connect()
    // The times of each round.
    var (alone, beside): ([[Double]], [[Double]]) = ([], [])
    var (lists, stops): ([Double], [Double]) = ([], [])
    for _ in 0..<rounds {
      alone.append(try waits(connection) { $0 < 2_000 })
      let list = try List(of: server, items: count)
      beside.append(try waits(connection) { _ in list.isRunning })
      lists.append(try list.duration())
    }
    for round in 0..<rounds {
      try server.connect().ask(Array(SampleItem(round).put.utf8))
      stops.append(try server.stop())
      if round + 1 < rounds { try server.start() }
    }
    func wait(_ name: String, _ part: Double) -> Row {
      let measurements = [("alone", alone), ("beside", beside)].map { name, rounds in
        Measurement(name: name, rounds: rounds.map { $0.percentile(part) })
      }
      return Row(name: "get device beside a list, \(name)", unit: "µs", measurements: measurements, base: "alone")
    }
    return [
      Row("item find group=* of \(name) items", "ms", ["list"], [lists.map { [$0] }]),
      wait("p50", 0.5), wait("p99", 0.99), wait("longest", 1),
      Row(
        "stop with \(name) items", "ms", [name], [stops.map { [$0] }], target: .atMost(1_000, name),
        remark: "from SIGTERM to the exit"),
    ]
  }

  /// Sends a request now and then, and returns the times.
  private func waits(_ connection: Connection, _ goesOn: (Int) -> Bool) throws -> [Double] {
    var times: [Double] = []
    while goesOn(times.count) {
      usleep(QuietUser.rest)
      times.append(try connection.time(Array("get device\n".utf8)))
      try connection.check(["OK "])
    }
    return times
  }
}

/// A thread that reads a list of all items of a daemon once.
private final class List: Sendable {
  private let state = Locked<Result<Double, any Error>?>(nil)

  init(of server: MeasuredServer, items: Int) throws {
    let path = server.socket
    try LinuxSystem.Thread(named: "list") { [state] in
      let result = Swift.Result { try Self.read(path, items) }
      state.withLock { $0 = result }
    }.detach()
  }

  var isRunning: Bool { state.withLock { $0 == nil } }

  /// Returns the duration in milliseconds of a list that has ended.
  func duration() throws -> Double { try state.withLock { $0 }?.get() ?? 0 }

  private static func read(_ path: String, _ items: Int) throws -> Double {
    let socket = try Connection.open(path)
    let started = nanoseconds()
    try socket.sendAll(Array("item find group=*\n".utf8))
    let end = Array("\nOK \(items)\n".utf8)
    var chunk = [UInt8](repeating: 0, count: 1 << 20)
    var last: [UInt8] = []
    while last != end {
      guard let count = try socket.read(into: &chunk), count > 0 else { throw BenchError("the list ended early") }
      last = Array((last + chunk[..<count].suffix(end.count)).suffix(end.count))
    }
    return Double(nanoseconds() - started) / 1e6
  }
}
