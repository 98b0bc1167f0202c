import CBench
import Foundation
import LinuxSystem

/// A request and its reply.
struct Question {
  /// A placeholder in a request for digits that no two requests share.
  static let varying = "000000000000"
  /// A placeholder in a request for the number of its connection.
  static let key = "KKK"

  /// The request.
  var request: [UInt8]
  /// The reply.
  var reply: [UInt8]
  /// The number of bytes at the end of the reply that differ each time.
  var varyingEnd = 0

  /// Creates a question with a known reply.
  init(_ request: String, reply: String) {
    self.request = Array(request.utf8)
    self.reply = Array(reply.utf8)
  }

  /// Creates a question of bytes with a known reply.
  init(_ request: [UInt8], reply: [UInt8], varyingEnd: Int = 0) {
    self.request = request
    self.reply = reply
    self.varyingEnd = varyingEnd
  }

  /// Sends the request once to get the reply, which ends when nothing more comes within 50 ms.
  init(_ request: String, asking server: MeasuredServer, varyingEnd: Int = 0) throws {
    self.request = Array(request.utf8)
    self.varyingEnd = varyingEnd
    reply = try Self.answer(to: self.request, from: server)
  }

  /// Sends a request on a new connection and returns its reply.
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

  /// Reads until nothing more comes within 50 ms.
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

  /// Returns the question with the greeting of a connection before it, sent together.
  func behind(_ greeting: Exchange) -> Question {
    guard !greeting.request.isEmpty else { return self }
    let all = greeting.reply + reply
    return Question(greeting.request + request, reply: all, varyingEnd: all.count - greeting.replySame)
  }

  /// Returns the position of a text in the request. Nil if the request does not contain it.
  func place(of text: String) -> Int? {
    let bytes = Array(text.utf8)
    return request.indices.first { request[$0...].starts(with: bytes) }
  }
}

/// The results of requests over a period of time.
struct Slice {
  /// The number of replies per second.
  let perSecond: Double
  /// The median time from a request, or from requests sent together, to the last reply, in microseconds.
  let microseconds: Double
  /// The median of these times weighted by duration: half of the total time is spent in shorter ones. In microseconds.
  let microsecondsByTime: Double
  /// The number of replies.
  let requests: Double

  /// Converts the numbers from C.
  init(_ slice: bench_slice) {
    requests = Double(slice.requests)
    perSecond = requests / (Double(slice.nanoseconds) / 1e9)
    microseconds = Double(slice.median_nanoseconds) / 1e3
    microsecondsByTime = Double(slice.median_by_time_nanoseconds) / 1e3
  }
}

/// Connections that send one request over and over, and compare each reply with the expected one.
@safe
final class Generator {
  private let client: OpaquePointer
  private let name: String

  /// Connects, and sends one request on each connection.
  init(_ question: Question, of server: MeasuredServer, connections: Int, depth: Int = 1) throws {
    var load = bench_load()
    if let place = question.place(of: Question.varying) {
      load.digits_at = place
      load.digits = Question.varying.utf8.count
      // A number that no earlier generator has sent.
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

  /// Sends requests for a period of time.
  func ask(seconds: Double) throws -> Slice { try unsafe run(seconds) { unsafe bench_client_run($0, $1, $2) } }

  /// Connects, sends one request and closes, repeatedly for a period of time.
  func connect(seconds: Double) throws -> Slice { try unsafe run(seconds) { unsafe bench_connects_run($0, $1, $2) } }

  /// Sends a number of batches on the first connection. Each batch has as many requests as are sent together.
  func `repeat`(_ times: Int) throws {
    try succeed("asking \(name)") { unsafe bench_client_repeat(client, UInt64(times)) }
  }

  /// Runs `body` while another thread sends requests.
  ///
  /// - Parameter processors: the CPUs of that thread, as a mask.
  /// - Returns: the result of `body`, and the number of answered requests.
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

  /// Starts a program, and sends a request as soon as it listens.
  ///
  /// - Returns: the process ID, and the time from before the start to the reply, in milliseconds.
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

/// Throws if a function of C reports a failure.
func succeed(_ what: String, _ body: () -> Int32) throws {
  switch body() {
  case 0: return
  case EPROTO: throw Failure("\(what): an answer was not the one that is expected")
  case ECHILD: throw Failure("\(what): it ended by itself")
  case let error: throw Failure("\(what): \(unsafe String(cString: strerror(error)))")
  }
}
