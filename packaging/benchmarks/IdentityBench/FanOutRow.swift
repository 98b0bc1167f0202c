import CBench
import Foundation
import LinuxSystem

/// The delivery of a change to all subscribers.
extension LimitBenchmark {
  /// The number of changes for one set of subscribers.
  private static let changesEach = 5

  /// Measures the time from a change until the last subscriber has its event.
  func fanOut(_ answers: Answers) throws -> Row {
    Program.say("\(Self.waiting.grouped) subscribers")
    let servers = try started([
      .limit(answers, guardian: guardian),
      .identityd(settings: MeasuredServer.manyConnections, guardian: guardian),
      .redis(guardian: guardian), .mosquitto(guardian: guardian), .dbusBroker(answers, guardian: guardian),
    ])
    defer { for server in servers { try? server.stop() } }
    // Connects the subscribers of one server at a time: all together would need more descriptors than
    // a process may have.
    let results = try inTurn(servers, rounds: options.rounds(usual: 6, quick: 2), warmUp: 0) { server in
      // Connecting takes less time if no process has to be woken on another CPU.
      try Placement.together.apply(to: [server])
      let subscribers = try Subscribers(of: server, count: Self.waiting, answers)
      try Placement.apart.apply(to: [server])
      _ = try subscribers.change()
      let times = try (0..<Self.changesEach).map { _ in try subscribers.change() }
      return [times.median]
    }
    return row(
      "change to the last of \(Self.waiting.grouped) subscribers", .milliseconds, servers.map(\.name), results,
      base: "the limit", target: .atMost(1.15), remark: "of all of them only identityd's change is on the disk")
  }
}

/// Connections that wait for events, and one that causes them.
@safe
private final class Subscribers {
  private let subscribers: OpaquePointer
  private let name: String
  private let next: () throws -> Exchange

  /// Opens all connections.
  init(of server: MeasuredServer, count: Int, _ answers: Answers) throws {
    name = server.name
    var subscribing = Exchange()
    var publishing = Exchange()
    switch server.language {
    case .lines where server.name == "the limit":
      subscribing = Exchange("subscribe\n", "OK\n")
      let change = Exchange("publish\n", answers.text + "\n").event(Array((answers.event + "\n").utf8))
      next = { change }
    case .lines:
      (subscribing, next) = try Self.tokens(server)
    case .redis:
      subscribing = Exchange(
        Redis.request("SUBSCRIBE", "bench"), Array("*3\r\n$9\r\nsubscribe\r\n$5\r\nbench\r\n:1\r\n".utf8))
      let event = Redis.request("message", "bench", answers.event)
      let change = Exchange(Redis.request("PUBLISH", "bench", answers.event), Array(":\(count)\r\n".utf8)).event(event)
      next = { change }
    case .mqtt:
      subscribing = Exchange(MQTT.connect + MQTT.subscribe, MQTT.connected + MQTT.subscribed)
      publishing = Exchange(MQTT.connect, MQTT.connected)
      let packet = MQTT.publish(Array(answers.event.utf8))
      let change = Exchange(packet).event(packet)
      next = { change }
    case .dbus:
      subscribing = Exchange(
        DBus.hello + DBus.subscribe, try Question.answer(to: DBus.hello + DBus.subscribe, from: server), same: 3)
      publishing = try server.language.greeting(of: server)
      let change = try Self.signal(answers.event, server)
      next = { change }
    case .memcached, .uuidd: throw Failure("\(server.name) has no events")
    }
    var made: OpaquePointer?
    try unsafe subscribing.withC { subscribing in
      try unsafe publishing.withC { publishing in
        try succeed("subscribing to \(server.name)") {
          unsafe bench_subscribers_open(server.socket, subscribing, publishing, UInt32(count), &made)
        }
      }
    }
    guard let subscribers = unsafe made else { throw Failure("there are no subscribers") }
    unsafe self.subscribers = subscribers
  }

  deinit { unsafe bench_subscribers_close(subscribers) }

  /// Sends a change.
  ///
  /// - Returns: the time until the last subscriber had its event, in milliseconds.
  func change() throws -> Double {
    var nanoseconds: UInt64 = 0
    try unsafe next().withC { change in
      try succeed("an event of \(name)") { unsafe bench_subscribers_run(subscribers, change, &nanoseconds) }
    }
    return Double(nanoseconds) / 1e6
  }

  /// Returns a signal, and its form with the name of the sender, as the bus forwards it.
  private static func signal(_ text: String, _ server: MeasuredServer) throws -> Exchange {
    let subscriber = try UnixSocket.connect(to: server.socket)
    try subscriber.sendAll(DBus.hello + DBus.subscribe)
    _ = try Question.readAll(from: subscriber)
    let publisher = try UnixSocket.connect(to: server.socket)
    try publisher.sendAll(DBus.hello + DBus.signal(text))
    let event = try Question.readAll(from: subscriber)
    return withExtendedLifetime(publisher) { Exchange(DBus.signal(text)).event(event, same: DBus.same) }
  }

  /// Returns a subscription, and a function that makes changes of a token. The numbers of their events have four
  /// digits, so that all events have the same length.
  private static func tokens(_ server: MeasuredServer) throws -> (Exchange, () throws -> Exchange) {
    let first = 1_001
    let connection = try server.connect()
    func put(_ number: Int) -> [UInt8] { Array("token put fcm token-number-\(String(format: "%09d", number))\n".utf8) }
    /// Returns the number in the reply to a subscription, and the text behind it, such as ` epoch=…` and the line feed.
    func position() throws -> (number: Int, rest: ArraySlice<UInt8>) {
      let reply = try Question.answer(to: Array("subscribe\n".utf8), from: server)
      let digits = reply.dropFirst("OK ".utf8.count).prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
      guard let number = Int(String(decoding: digits, as: UTF8.self)) else {
        throw Failure("a subscription tells no number")
      }
      return (number, reply[digits.endIndex...])
    }
    let begun = try position().number
    if begun < first { try connection.ask((begun..<first).flatMap(put), replies: first - begun) }
    let (last, rest) = try position()
    // A number other than that of the stored token.
    let sample = try Question(String(decoding: put(last + 1_000_000), as: UTF8.self), asking: server)
    let spy = try Question.answer(to: Array("subscribe token since=\(last)\n".utf8), from: server)
    let reached = last + 1
    guard let event = spy.split(separator: UInt8(ascii: "\n")).last,
      event.starts(with: Array("EVENT \(reached) token".utf8)), reached < 9_000
    else { throw Failure("there is no event \(reached)") }
    var number = reached
    let bytes = Array(event) + [UInt8(ascii: "\n")]
    return (
      Exchange(Array("subscribe token\n".utf8), Array("OK \(reached)".utf8) + rest),
      {
        number += 1
        var change = Exchange(put(number), sample.reply)
        change.replySame = "OK replaced device=".utf8.count
        return change.event(bytes, same: "EVENT ".utf8.count)
      }
    )
  }
}
