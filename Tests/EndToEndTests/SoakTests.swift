import Foundation
import IdentityCore
import TestSupport
import Testing

/// A daemon under a constant mixed load, which must not grow.
@Suite struct SoakTests {
  /// The duration in seconds. The usual run only shows that the test works.
  private static let duration = Trial.isLong ? 600.0 : 3.0
  /// A lower bound of the length of an event, in bytes.
  private static let shortestEvent = 64

  /// The resources that the daemon uses at one moment.
  private struct Sample {
    let memory: Double
    let descriptors: Double
  }

  @Test func `memory and descriptors do not grow`() throws {
    let daemon = try DaemonUnderTest().start(configuration: "[Log]\nLevel=warning\n")
    let socket = daemon.socket
    // Fills the event log up to its bound before the first sample: until then the daemon's memory grows.
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
    // In a short run the daemon does not reach a steady state.
    #expect(isSteady || !Trial.isLong, "\(memory) bytes and \(descriptors) descriptors more")
    try Trial("soak, seconds").report(
      tried: Int(Self.duration), lost: isSteady ? 0 : Int(Self.duration),
      "\(rounds.reduce(0, +)) rounds; memory \(Int(memory / hours)) bytes/h, descriptors \(Int(descriptors / hours))/h")
  }

  /// Returns the rise of a straight line through the values (least squares), from the first value to the last.
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

  // MARK: Work of the clients

  /// Makes all changes that can be repeated for ever while the number of stored records stays the same.
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

  /// Sends requests that read, and invalid ones.
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

  /// Subscribes, reads some events, and disconnects.
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
  // Sendable: the thread writes the result before it signals the semaphore. The result is read after that.
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
