import Foundation
import IdentityCore
import TestSupport
import Testing

/// A daemon under a constant mixed load, which must not grow.
@Suite(.tags(.trial, .threads)) struct SoakTests {
  /// The duration in seconds.
  private static let duration = Trial.isLong ? 600.0 : Trial.isShort ? 1 : 5
  /// The time before the first sample. Under load beside other programs, the allocator of a debug build reached its level
  /// after a quarter of an hour; the memory stayed the same for the ten minutes after that.
  private static let warmUp = Trial.isLong ? 900.0 : duration / 5
  /// The highest allowed growth of the memory, in bytes. A short run sees pages that are touched for the first time.
  private static let growthLimit = Trial.isLong ? 1e6 : 3e6

  /// The daemon does not grow: with a full event log, a straight line through the samples of its memory is level, and
  /// when all clients have left, it has as many descriptors as before they came.
  ///
  /// With a sanitizer (`Trial.isShort`) the load only looks for races: memory that was freed stays with the sanitizer
  /// for a while, and the growth of the process says nothing about the daemon.
  @Test func `memory and descriptors do not grow`() throws {
    let daemon = try DaemonUnderTest().start(configuration: "[Log]\nLevel=warning\n")
    // A short load may make fewer events than its subscriber waits for.
    try Self.putItems(daemon.socket, Trial.isShort ? 100 : Bound.keptEvents + Bound.spareEvents + 101)
    try Self.load(daemon.socket, seconds: Self.warmUp) {}
    let before = try descriptors(daemon)
    var memory: [Double] = []
    let rounds = try Self.load(daemon.socket, seconds: Self.duration) {
      memory.append(try self.memory(daemon))
      usleep(Self.duration > 60 ? 1_000_000 : 50_000)
    }
    #expect(rounds.allSatisfy { $0 > 0 })
    let growth = growth(memory)
    let left = try descriptors(daemon) - before
    let isSteady = growth < Self.growthLimit && left == 0
    if !Trial.isShort { #expect(isSteady, "\(Int(growth)) bytes and \(left) descriptors more in \(rounds) rounds") }
    try Trial("soak, seconds").report(
      tried: Int(Self.duration), lost: isSteady ? 0 : Int(Self.duration),
      "\(rounds.reduce(0, +)) rounds; memory \(Int(growth / Self.duration * 3_600)) bytes/h, descriptors +\(left)")
  }

  /// Puts a large item at least that many times. Until the event log reaches both of its bounds, the memory of the daemon
  /// grows.
  private static func putItems(_ socket: String, _ times: Int) throws {
    let client = try Client(socket)
    let name = String(repeating: "x", count: 250)
    let line = "item put service=\(name) account=\(name) data=eA==\n"
    let window = 100
    for _ in 0..<times / window {
      try client.send(String(repeating: line, count: window))
      for _ in 0..<window { #expect(try client.line()?.hasPrefix("OK ") == true) }
    }
  }

  /// Lets three clients work for a time.
  ///
  /// - Parameter meanwhile: is called repeatedly, and waits.
  /// - Returns: the number of rounds of each client.
  @discardableResult
  private static func load(_ socket: String, seconds: Double, _ meanwhile: () throws -> Void) throws -> [Int] {
    let end = Date(timeIntervalSinceNow: seconds)
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
    while Date() < end { try meanwhile() }
    return try workers.map { try $0.finish() }
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

  /// Returns the resident memory of the daemon, in bytes.
  private func memory(_ daemon: DaemonUnderTest) throws -> Double {
    let pages = try String(contentsOfFile: "/proc/\(daemon.process.processIdentifier)/statm", encoding: .utf8)
    return try #require(Double(pages.split(separator: " ")[1])) * Double(getpagesize())
  }

  /// Returns the number of the daemon's descriptors while it has a single client.
  private func descriptors(_ daemon: DaemonUnderTest) throws -> Int {
    let client = try daemon.client()
    let deadline = Date(timeIntervalSinceNow: patience)
    while try client.statusValue("connections") != "1" {
      guard Date() < deadline else { throw Failure("clients that have left are still connected") }
      usleep(1_000)
    }
    let folder = "/proc/\(daemon.process.processIdentifier)/fd"
    return try withExtendedLifetime(client) { try FileManager.default.contentsOfDirectory(atPath: folder).count }
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
