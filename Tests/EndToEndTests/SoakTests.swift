import Foundation
import IdentityCore
import TestSupport
import Testing

/// What a daemon does all day, for as long as there is time: it must not grow.
@Suite struct SoakTests {
  /// How long it goes on, in seconds. The usual run only shows that it works.
  private static let duration = Trial.isLong ? 600.0 : 3.0
  /// No event is told in fewer bytes.
  private static let shortestEvent = 64

  /// What the kernel says of the daemon at a moment.
  private struct Sample {
    let memory: Double
    let descriptors: Double
  }

  @Test func `memory and descriptors do not grow`() throws {
    let daemon = try DaemonUnderTest().start(configuration: "[Log]\nLevel=warning\n")
    let socket = daemon.socket
    // What is kept at first comes together before anything is measured: the last events, up to their length in memory.
    let settled = Trial.isLong ? Bound.eventLogLength / Self.shortestEvent : 0
    var round = 0
    while try Client(socket).statusValue("last-event").flatMap({ Int($0) }) ?? 0 < settled {
      for _ in 0..<100 {
        try Self.change(socket, round)
        round += 1
      }
    }
    let end = Date(timeIntervalSinceNow: Self.duration)
    let lives: [@Sendable (Int) throws -> Void] = [
      { try Self.change(socket, $0) }, { try Self.ask(socket, $0) }, { try Self.listen(socket, $0) },
    ]
    let workers = lives.map { life in
      Worker {
        var rounds = 0
        while Date() < end {
          try life(rounds)
          rounds += 1
        }
        return rounds
      }
    }
    var samples: [Sample] = []
    while Date() < end {
      samples.append(try sample(daemon))
      usleep(Self.duration > 60 ? 1_000_000 : 100_000)
    }
    let rounds = try workers.map { try $0.finish() }
    #expect(rounds.allSatisfy { $0 > 0 })
    let hours = Self.duration / 3_600
    let memory = growth(samples.map(\.memory))
    let descriptors = growth(samples.map(\.descriptors))
    let isSteady = abs(memory) < 1_000_000 && abs(descriptors) < 1
    // In a moment it has not settled.
    #expect(isSteady || !Trial.isLong, "\(memory) bytes and \(descriptors) descriptors more")
    try Trial("soak, seconds").report(
      tried: Int(Self.duration), lost: isSteady ? 0 : Int(Self.duration),
      "\(rounds.reduce(0, +)) rounds; memory \(Int(memory / hours)) bytes/h, descriptors \(Int(descriptors / hours))/h")
  }

  /// How much the last of these is above the first, on the straight line through them (least squares).
  private func growth(_ values: [Double]) -> Double {
    let count = Double(values.count)
    let middle = (count - 1) / 2
    let mean = values.reduce(0, +) / count
    let products = values.enumerated().reduce(0) { $0 + (Double($1.offset) - middle) * ($1.element - mean) }
    let squares = values.indices.reduce(0) { $0 + (Double($1) - middle) * (Double($1) - middle) }
    return products / squares * (count - 1)
  }

  private func sample(_ daemon: DaemonUnderTest) throws -> Sample {
    let process = "/proc/\(daemon.process.processIdentifier)"
    let pages = try String(contentsOfFile: "\(process)/statm", encoding: .utf8).split(separator: " ")
    let descriptors = try FileManager.default.contentsOfDirectory(atPath: "\(process)/fd").count
    return Sample(
      memory: try #require(Double(pages[1])) * Double(getpagesize()), descriptors: Double(descriptors))
  }

  // MARK: What clients do

  /// Changes everything that can change for ever without more being stored.
  private static func change(_ socket: String, _ round: Int) throws {
    let client = try Client(socket)
    let secret = Data(String(repeating: "x", count: round % 3_000).utf8).base64EncodedString()
    let requests = [
      "item put service=soak account=\(round % 50) data=\(secret) label=\"a b\"",
      "item read service=soak account=\(round % 50)",
      "item delete service=soak account=\((round + 25) % 50)",
      "token put fcm data=dG9rZW4\(round % 2 == 0 ? "x" : "y")", "version report 1.\(round % 3)",
    ]
    for request in requests { _ = try client.ask(request) }
  }

  /// Asks what there is, and what is wrong.
  private static func ask(_ socket: String, _ round: Int) throws {
    let client = try Client(socket)
    let requests = [
      "hello", "whoami", "get device", "get installation", "get session", "get boot", "get key soak",
      "get uuid count=100",
      "status", "history device", "item find group=*", "version history", "token list", "app list", "resolve x", "\"",
      "get device \(round)", "help", "check \(UUID().uuidString)",
    ]
    for request in requests { _ = try client.ask(request) }
    if round.isMultiple(of: 7) { try client.send("get uuid count=10000\n") }
  }

  /// Subscribes, reads some, and goes.
  private static func listen(_ socket: String, _ round: Int) throws {
    let client = try Client(socket)
    let last = try client.statusValue("last-event").flatMap { Int($0) } ?? 0
    try client.send("subscribe since=\(max(0, last - 20))\n")
    for _ in 0..<10 { _ = try client.line() }
    if round.isMultiple(of: 2) { try client.send("unsubscribe\n") }
  }
}

/// A thread with a result.
private final class Worker: @unchecked Sendable {
  // Sendable: the result is written before the semaphore is signalled, and read behind that.
  private var result: Result<Int, any Error> = .success(0)
  private let done = DispatchSemaphore(value: 0)

  init(_ body: @escaping @Sendable () throws -> Int) {
    Thread.detachNewThread { [self] in
      result = Result(catching: body)
      done.signal()
    }
  }

  func finish() throws -> Int {
    done.wait()
    return try result.get()
  }
}
