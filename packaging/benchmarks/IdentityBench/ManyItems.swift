import Foundation
import LinuxSystem

/// A daemon with very many items: the time of its stop, of a short answer, and the wait of a client beside a long answer.
struct ManyItems {
  /// The longest allowed stop, in milliseconds.
  private static let stopLimit = 1_000.0
  /// The number of requests of a client that is alone.
  private static let requests = 2_000
  /// The pause of that client between two requests, in microseconds.
  private static let rest: UInt32 = 300

  let options: Options
  let guardian: Guardian
  /// As many items as `ItemsPerApp=` allows.
  private var count: Int { options.isQuick ? 100_000 : 1_000_000 }
  private var rounds: Int { options.rounds(usual: 5, quick: 3) }

  /// The times of a client's requests in each round, in microseconds.
  private struct Waits {
    var rounds: [[Double]] = []

    func measurement(_ name: String, _ part: Double) -> Measurement {
      Measurement(name, rounds.map { $0.percentile(part) })
    }
  }

  /// Fills the daemon and measures it.
  func run() throws -> [Row] {
    Program.say("filling a daemon with \(count.grouped) items")
    let settings = "[Limits]\nItemsPerApp=\(count)\nItemBytesPerApp=1G\n[Log]\nLevel=warning\n"
    let server = try MeasuredServer.identityd(settings: settings, guardian: guardian)
    try server.start()
    defer { if server.process != 0 { try? server.stop() } }
    try server.fill(count) { String(decoding: SampleItem(number: $0).put, as: UTF8.self) }
    return try answers(server) + [stops(server)]
  }

  /// Measures the first items of all, all items, and another client meanwhile.
  private func answers(_ server: MeasuredServer) throws -> [Row] {
    let few = Array("item find group=* limit=10\n".utf8)
    let expected = (0..<10).map { SampleItem(number: $0).answerToFind[0] } + [Array("OK 10".utf8)]
    let connection = try server.connect()
    var (short, alone, beside) = (Waits(), Waits(), Waits())
    var lists: [Double] = []
    for _ in 0..<rounds {
      short.rounds.append(
        try (0..<200).map { _ in
          let time = try connection.time(few, replies: 1)
          try connection.check(expected)
          return time
        })
      alone.rounds.append(try waits(connection) { $0 < Self.requests })
      let list = List(of: server, items: count)
      beside.rounds.append(try waits(connection) { _ in list.isRunning })
      lists.append(try list.finish())
    }
    func wait(_ name: String, _ part: Double) -> Row {
      Row(
        "get device beside a list, \(name)", .microseconds,
        [alone.measurement("alone", part), beside.measurement("beside", part)], base: "alone")
    }
    return [
      Row("item find group=* limit=10 among \(count.grouped) items", .microseconds, [short.measurement("p50", 0.5)]),
      Row("item find group=* of \(count.grouped) items", .milliseconds, [Measurement("list", lists)]),
      wait("p50", 0.5), wait("p99", 0.99), wait("longest", 1),
    ]
  }

  /// Sends a request now and then, and returns the times.
  private func waits(_ connection: Connection, _ goesOn: (Int) -> Bool) throws -> [Double] {
    var times: [Double] = []
    while goesOn(times.count) {
      usleep(Self.rest)
      times.append(try connection.time(Array("get device\n".utf8), replies: 1))
      try connection.check([Array("OK ".utf8)])
    }
    return times
  }

  /// Measures the time from SIGTERM to the exit, after a change.
  private func stops(_ server: MeasuredServer) throws -> Row {
    let times = try (0..<rounds).map { round in
      let connection = try server.connect()
      try connection.ask(SampleItem(number: round).put, replies: 1)
      let time = try server.timedStop()
      if round + 1 < rounds { try server.start() }
      return time
    }
    let name = count.grouped
    return Row(
      "stop with \(name) items", .milliseconds, [Measurement(name, times)], target: .atMost(Self.stopLimit, name),
      remark: "from SIGTERM to the exit")
  }
}

/// A thread that reads a list of all items of a daemon once.
private final class List: Sendable {
  private let state = Locked<Result<Double, any Error>?>(nil)

  init(of server: MeasuredServer, items: Int) {
    let socket = server.socket
    Foundation.Thread.detachNewThread { [self] in
      let result = Swift.Result { try Self.read(socket, items) }
      state.withLock { $0 = result }
    }
  }

  var isRunning: Bool { state.withLock { $0 == nil } }

  /// Waits for the end of the list, and returns its duration in milliseconds.
  func finish() throws -> Double {
    while true {
      if let result = state.withLock({ $0 }) { return try result.get() }
      usleep(1_000)
    }
  }

  private static func read(_ path: String, _ items: Int) throws -> Double {
    let socket = try UnixSocket.connect(to: path)
    let started = ContinuousClock.now
    try socket.sendAll(Array("item find group=*\n".utf8))
    let end = Array("\nOK \(items)\n".utf8)
    var chunk = [UInt8](repeating: 0, count: 1 << 20)
    var last: [UInt8] = []
    while !last.elementsEqual(end) {
      guard let count = try socket.read(into: &chunk), count > 0 else { throw Failure("the list ended early") }
      last = Array((last + chunk[..<count].suffix(end.count)).suffix(end.count))
    }
    return (ContinuousClock.now - started).microseconds / 1e3
  }
}

extension MeasuredServer {
  /// The number of lines that are sent together while a daemon is filled.
  private static let window = 500

  /// Sends many requests. The next ones are sent before the last are answered.
  func fill(_ count: Int, _ line: (Int) -> String) throws {
    let connection = try connect()
    func receive(_ count: Int) throws {
      try connection.receive(replies: count)
      try connection.check(Array(repeating: Array("OK".utf8), count: count))
    }
    var underWay = 0
    for first in stride(from: 0, to: count, by: Self.window) {
      let numbers = first..<min(first + Self.window, count)
      try connection.send(Array(numbers.map(line).joined().utf8))
      try receive(underWay)
      underWay = numbers.count
    }
    try receive(underWay)
  }
}
