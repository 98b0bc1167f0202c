import CBench
import Foundation
import LinuxSystem

/// A request, and what it is answered with.
struct Question {
  /// Where these stand in a request there are digits instead that no two requests share.
  static let varying = "000000000000"
  /// Where these stand in a request there is the number of its connection instead.
  static let key = "KKK"

  /// What is sent.
  var request: [UInt8]
  /// What comes back.
  var reply: [UInt8]
  /// How many bytes at the end of the reply differ from one time to the next.
  var varyingEnd = 0

  /// Puts a question together whose answer is known.
  init(_ request: String, reply: String) {
    self.request = Array(request.utf8)
    self.reply = Array(reply.utf8)
  }

  /// The same for bytes.
  init(_ request: [UInt8], reply: [UInt8], varyingEnd: Int = 0) {
    self.request = request
    self.reply = reply
    self.varyingEnd = varyingEnd
  }

  /// Asks once for the answer: what comes, and what comes within 50 ms of that.
  init(_ request: String, asking server: MeasuredServer, varyingEnd: Int = 0) throws {
    self.request = Array(request.utf8)
    self.varyingEnd = varyingEnd
    reply = try Self.answer(to: self.request, from: server)
  }

  /// What comes back at once.
  static func answer(
    to request: [UInt8], greeting: Exchange = Exchange(), from server: MeasuredServer
  ) throws -> [UInt8] {
    let socket = try UnixSocket.connect(to: server.socket)
    if !greeting.request.isEmpty {
      try socket.sendAll(greeting.request)
      _ = try readAll(from: socket)
    }
    try socket.sendAll(request)
    return try readAll(from: socket)
  }

  /// What comes, and what comes within 50 ms of that.
  static func readAll(from socket: borrowing Descriptor) throws -> [UInt8] {
    var all: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4_096)
    var limit = timeval(tv_sec: 60, tv_usec: 0)
    while true {
      unsafe setsockopt(socket.number, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
      guard let count = try socket.read(into: &chunk), count > 0 else { break }
      all += chunk[..<count]
      limit = timeval(tv_sec: 0, tv_usec: 50_000)
    }
    guard !all.isEmpty else { throw Failure("no answer came") }
    return all
  }

  /// The same with what a connection says before it, all in one.
  func behind(_ greeting: Exchange) -> Question {
    guard !greeting.request.isEmpty else { return self }
    let all = greeting.reply + reply
    return Question(greeting.request + request, reply: all, varyingEnd: all.count - greeting.replySame)
  }

  /// Where some bytes stand in the request; nil where they do not.
  func place(of text: String) -> Int? {
    let bytes = Array(text.utf8)
    return request.indices.first { request[$0...].starts(with: bytes) }
  }
}

/// What came of asking for a while.
struct Slice {
  /// How many were answered in a second.
  let perSecond: Double
  /// The median of the times from a request, or from those sent together, to the last answer, in microseconds.
  let microseconds: Double
  /// The median of those times by time: half of all the time goes into shorter ones.
  let microsecondsByTime: Double
  /// How many were answered.
  let requests: Double

  /// Takes the numbers over.
  init(_ slice: bench_slice) {
    requests = Double(slice.requests)
    perSecond = requests / (Double(slice.nanoseconds) / 1e9)
    microseconds = Double(slice.median_nanoseconds) / 1e3
    microsecondsByTime = Double(slice.median_by_time_nanoseconds) / 1e3
  }
}

/// Connections that ask one question over and over, and compare each answer with the one that is expected.
@safe
final class Generator {
  private let client: OpaquePointer
  private let name: String

  /// Connects, and asks once over each connection.
  init(_ question: Question, of server: MeasuredServer, connections: Int, depth: Int = 1) throws {
    var load = bench_load()
    if let place = question.place(of: Question.varying) {
      load.digits_at = place
      load.digits = Question.varying.utf8.count
      // Not what another generator has sent before.
      load.counter = UInt64(Date().timeIntervalSince1970 * 1e4)
    }
    if let place = question.place(of: Question.key) {
      load.key_at = place
      load.key_digits = Question.key.utf8.count
    }
    load.reply_same = question.reply.count - question.varyingEnd
    load.connections = UInt32(connections)
    load.depth = UInt32(depth)
    let greeting = connections > 0 ? try server.language.greeting(of: server) : Exchange()
    var made: OpaquePointer?
    try unsafe greeting.withC { greeting in
      try succeed("asking \(server.name)") {
        unsafe bench_client_open(
          server.socket, question.request, question.request.count, question.reply, question.reply.count, greeting,
          &load, &made)
      }
    }
    guard let client = unsafe made else { throw Failure("there is no client") }
    unsafe self.client = client
    name = server.name
  }

  deinit { unsafe bench_client_close(client) }

  /// Asks for a while.
  func ask(seconds: Double) throws -> Slice { try unsafe run(seconds) { unsafe bench_client_run($0, $1, $2) } }

  /// Connects, asks once, and closes, for a while.
  func connect(seconds: Double) throws -> Slice { try unsafe run(seconds) { unsafe bench_connects_run($0, $1, $2) } }

  /// Asks over the first connection, so many times as many requests as are sent together.
  func `repeat`(_ times: Int) throws {
    try succeed("asking \(name)") { unsafe bench_client_repeat(client, UInt64(times)) }
  }

  /// Does something while another thread asks.
  ///
  /// - Parameter processors: where that thread runs.
  /// - Returns: how many requests it got answered.
  func beside<Result>(
    on processors: UInt64, _ body: () throws -> Result
  ) throws -> (result: Result, requests: Int) {
    var background: OpaquePointer?
    try succeed("asking \(name)") { unsafe bench_background_start(client, processors, &background) }
    let result = Swift.Result { try body() }
    var requests: UInt64 = 0
    try succeed("asking \(name)") { unsafe bench_background_stop(background, &requests) }
    return (try result.get(), Int(requests))
  }

  /// Starts a program, and asks as soon as it listens.
  ///
  /// - Returns: its number, and the time from before its start to the answer, in milliseconds.
  func start(_ arguments: [String], log: String) throws -> (process: Int32, milliseconds: Double) {
    var process: pid_t = 0
    var nanoseconds: UInt64 = 0
    var strings = unsafe arguments.map { unsafe strdup($0) } + [nil]
    defer { unsafe strings.forEach { unsafe free($0) } }
    try succeed("starting \(name)") { unsafe bench_start(&strings, log, client, &process, &nanoseconds) }
    return (process, Double(nanoseconds) / 1e6)
  }

  private func run(
    _ seconds: Double, _ body: (OpaquePointer, UInt64, UnsafeMutablePointer<bench_slice>) -> Int32
  ) throws -> Slice {
    var slice = bench_slice()
    try succeed("asking \(name)") { unsafe body(client, UInt64(seconds * 1e9), &slice) }
    return Slice(slice)
  }
}

/// Throws where a function of C says that it failed.
func succeed(_ what: String, _ body: () -> Int32) throws {
  switch body() {
  case 0: return
  case EPROTO: throw Failure("\(what): an answer was not the one that is expected")
  case ECHILD: throw Failure("\(what): it ended by itself")
  case let error: throw Failure("\(what): \(unsafe String(cString: strerror(error)))")
  }
}
