import Foundation
import LinuxSystem

/// A request, and the reply that has to come.
struct Question {
  /// The request.
  let request: [UInt8]
  /// The reply, which always has this length.
  let reply: [UInt8]
  /// The number of bytes at the beginning of the reply that are the same each time.
  let same: Int
  /// The digits of the request that are another number each time.
  fileprivate let counter: Range<Int>
  /// The digits of the request that are the number of the connection.
  fileprivate let key: Range<Int>

  /// Creates a question with a known reply.
  ///
  /// - Parameters:
  ///   - text: the request. Adjacent `#` become another number each time, and adjacent `%` that of the connection.
  ///   - same: the number of bytes at the beginning of the reply that are the same each time; nil for all.
  init(_ text: String, reply: [UInt8], same: Int? = nil) {
    let bytes = Array(text.utf8)
    func run(of letter: UInt8) -> Range<Int> {
      guard let first = bytes.firstIndex(of: letter) else { return 0..<0 }
      return first..<(bytes[first...].firstIndex { $0 != letter } ?? bytes.count)
    }
    counter = run(of: UInt8(ascii: "#"))
    key = run(of: UInt8(ascii: "%"))
    let digits = Set(Array(counter) + Array(key))
    request = bytes.indices.map { digits.contains($0) ? UInt8(ascii: "0") : bytes[$0] }
    self.reply = reply
    self.same = same ?? reply.count
  }

  /// Sends the request once to get the reply.
  init(_ text: String, asking server: MeasuredServer, same: Int? = nil) throws {
    let connection = try server.connect()
    try connection.ask(Question(text, reply: []).request)
    self.init(text, reply: connection.received, same: same)
  }
}

/// The results of requests over a period of time.
struct Slice {
  /// The number of replies.
  fileprivate(set) var requests = 0.0
  /// The duration, in nanoseconds.
  fileprivate var duration: UInt64 = 0
  /// The times from a request, or from requests sent together, to the last reply, in nanoseconds.
  fileprivate var times: [UInt32] = []

  /// The number of replies per second.
  var perSecond: Double { requests / Double(duration) * 1e9 }
  /// The median of the times, in microseconds.
  var microseconds: Double { times.map { Double($0) / 1e3 }.median }
}

/// The load of all benchmarks: connections that send one request over and over, and compare each reply.
///
/// The compared bytes and the clock are all that it costs beside the system calls, so that a server that only sends
/// fixed bytes is at its own limit, and not at that of its client. One thread at a time may use it.
final class Generator: @unchecked Sendable {
  private final class Asking {
    let socket: Descriptor
    /// The bytes of the replies that have not come yet.
    var missing = 0
    var asked: UInt64 = 0

    init(_ path: String) throws { socket = try Connection.open(path) }
  }

  /// The longest wait for a reply, in milliseconds.
  private static let patience: Int32 = 60_000

  private let question: Question
  private let server: MeasuredServer
  private let depth: Int
  private let poller: Poller
  private var connections: [Asking] = []
  /// The requests that are sent together, and the expected replies.
  private var batch: [UInt8] = []
  private var replies: [UInt8] = []
  /// Room for these replies and one more byte, which shows surplus bytes.
  private var received: [UInt8]
  private var counter: UInt64

  /// Connects, and sends one request on each connection.
  ///
  /// - Parameter depth: the number of requests that are sent together.
  init(_ question: Question, of server: MeasuredServer, connections count: Int, depth: Int = 1) throws {
    self.question = question
    self.server = server
    self.depth = depth
    poller = try Poller()
    for _ in 0..<depth {
      batch += question.request
      replies += question.reply
    }
    received = [UInt8](repeating: 0, count: replies.count + 1)
    // A number that no earlier generator has sent.
    counter = UInt64(Date().timeIntervalSince1970 * 1e4)
    for place in 0..<count {
      let asking = try Asking(server.socket)
      try poller.watch(asking.socket.number, as: UInt64(place), writes: false, isNew: true)
      try askOnce(asking, place, depth: 1)
      connections.append(asking)
    }
  }

  /// Sends requests for a period of time: some together on each connection, and the next as soon as these are answered.
  func ask(seconds: Double) throws -> Slice {
    var slice = Slice()
    let limit = UInt64(seconds * 1e9)
    let started = nanoseconds()
    var time = started
    // A single connection needs no epoll.
    while connections.count == 1, time - started < limit {
      let asked = time
      try askOnce(connections[0], 0, depth: depth)
      time = nanoseconds()
      note(time - asked, depth, &slice)
    }
    var waiting = connections.count == 1 ? 0 : connections.count
    for place in 0..<waiting { try ask(connections[place], place, depth: depth) }
    while waiting > 0 {
      let ready = try poller.wait(milliseconds: Self.patience)
      guard !ready.isEmpty else { throw BenchError("\(server.name) does not answer") }
      for number in ready {
        let asking = connections[Int(number)]
        try take(asking, depth: depth)
        guard asking.missing == 0 else { continue }
        time = nanoseconds()
        note(time - asking.asked, depth, &slice)
        if time - started < limit { try ask(asking, Int(number), depth: depth) } else { waiting -= 1 }
      }
    }
    slice.duration = time - started
    return slice
  }

  /// Connects, sends one request and closes, repeatedly for a period of time.
  func connect(seconds: Double) throws -> Slice {
    var slice = Slice()
    let started = nanoseconds()
    while slice.duration < UInt64(seconds * 1e9) {
      let asked = nanoseconds()
      try askOnce(try Asking(server.socket), 0, depth: 1)
      let time = nanoseconds()
      note(time - asked, 1, &slice)
      slice.duration = time - started
    }
    return slice
  }

  /// Runs `body` while another thread sends requests, on the processors that a client does not have alone.
  ///
  /// - Returns: the result of `body`, and the number of answered requests.
  func beside<Result>(_ body: () throws -> Result) throws -> (result: Result, requests: Double) {
    let (isOver, outcome) = (Locked(false), Locked<Swift.Result<Double, any Error>>(.success(0)))
    // A thread begins on the processors of the one that starts it.
    try Placement.pinSelf(to: Placement.others)
    let thread = try LinuxSystem.Thread(named: "beside") { [self] in
      let result = Swift.Result {
        var requests = 0.0
        while !isOver.withLock({ $0 }) { requests += try ask(seconds: 0.005).requests }
        return requests
      }
      outcome.withLock { $0 = result }
    }
    try Placement.pinSelf(to: Placement.first)
    let result = Swift.Result { try body() }
    isOver.withLock { $0 = true }
    thread.join()
    return (try result.get(), try outcome.withLock { $0 }.get())
  }

  private func note(_ time: UInt64, _ requests: Int, _ slice: inout Slice) {
    slice.requests += Double(requests)
    slice.times.append(UInt32(clamping: time))
  }

  private func askOnce(_ asking: Asking, _ place: Int, depth: Int) throws {
    try ask(asking, place, depth: depth)
    while asking.missing > 0 { try take(asking, depth: depth) }
  }

  /// Sends the next requests.
  private func ask(_ asking: Asking, _ place: Int, depth: Int) throws {
    for request in 0..<depth where !question.counter.isEmpty || !question.key.isEmpty {
      let start = request * question.request.count
      // Consecutive numbers in an order that looks like none.
      counter += 1
      write(counter &* 1_000_003, question.counter, start)
      write(UInt64(place), question.key, start)
    }
    asking.missing = question.reply.count * depth
    asking.asked = nanoseconds()
    if depth == self.depth {
      try asking.socket.sendAll(batch)
    } else {
      try asking.socket.sendAll(Array(batch[..<(question.request.count * depth)]))
    }
  }

  private func write(_ number: UInt64, _ digits: Range<Int>, _ start: Int) {
    var rest = number
    for place in digits.reversed() {
      batch[start + place] = UInt8(ascii: "0") + UInt8(rest % 10)
      rest /= 10
    }
  }

  /// Receives bytes once, and checks them.
  private func take(_ asking: Asking, depth: Int) throws {
    guard let count = try asking.socket.read(into: &received) else {
      throw BenchError("\(server.name) does not answer")
    }
    guard count > 0 else { throw BenchError("\(server.name) closed a connection") }
    guard count <= asking.missing, isExpected(count, from: question.reply.count * depth - asking.missing) else {
      let text = String(decoding: received[..<min(count, 200)], as: UTF8.self)
      throw BenchError("\(server.name) sent an answer that is not the expected one: \(text)")
    }
    asking.missing -= count
  }

  /// Whether received bytes are as expected at an offset in the replies.
  private func isExpected(_ count: Int, from offset: Int) -> Bool {
    let whole = question.reply.count
    return unsafe received.withUnsafeBytes { received in
      unsafe replies.withUnsafeBytes { replies in
        guard let received = received.baseAddress, let replies = replies.baseAddress else { return false }
        var place = 0
        while place < count {
          let begun = (offset + place) % whole
          let part = min(count - place, whole - begun)
          let compared = max(0, min(part, question.same - begun))
          guard unsafe memcmp(received + place, replies + offset + place, compared) == 0 else { return false }
          place += part
        }
        return true
      }
    }
  }
}

/// Returns the monotonic clock, in nanoseconds.
func nanoseconds() -> UInt64 {
  var time = timespec()
  // Fails only for a clock that does not exist.
  unsafe clock_gettime(CLOCK_MONOTONIC, &time)
  return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}
