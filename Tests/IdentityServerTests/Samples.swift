import IdentityCore
import IdentityWire

@testable import IdentityServer

extension Event {
  /// Returns an event whose line has about this length.
  static func sample(
    _ sequence: Int64, _ topic: Topic = .devices, length: Int = 0, audience: Audience = .sharing
  ) -> Event {
    Event(
      sequence: sequence, time: Timestamp(milliseconds: 1_795_000_000_000), topic: topic, name: "added",
      attributes: [Attribute("value", Text(trusted: [UInt8](repeating: 120, count: max(0, length - 64))))],
      audience: audience)
  }
}

extension EventLog {
  /// Creates a log with this number of events, each of about this length.
  init(count: Int, length: Int = 0) {
    self.init([] as [EventLine], last: 0)
    append(count, length: length)
  }

  init(_ events: [Event], last: Int64) { self.init(events.map { EventLine($0) }, last: last) }

  /// Appends an event.
  mutating func append(_ event: Event) { append(EventLine(event)) }

  /// Appends this number of events of one topic.
  mutating func append(_ count: Int, _ topic: Topic = .devices, length: Int = 0) {
    for _ in 0..<count { append(.sample(last + 1, topic, length: length)) }
  }
}

/// The event output of a simulated connection. The test decides how much of it the client reads.
final class Reader {
  /// A line in the output.
  enum Line: Equatable {
    case event(Int64)
    case lag(sequence: Int64, missed: Int64, from: Int64)
  }

  var subscription: Subscription
  var isVisible: (Audience) -> Bool = { _ in true }
  private(set) var output: [UInt8] = []
  private(set) var sent = 0
  /// The bytes that the last turn added.
  private(set) var added: ArraySlice<UInt8> = []

  /// Subscribes to the topics, by default to all.
  init(_ topics: Set<Topic> = Set(Topic.allCases), after start: Int64, _ log: EventLog) {
    subscription = Subscription(at: start)
    subscription.add(topics, after: start, now: log.last)
  }

  init(_ subscription: Subscription) { self.subscription = subscription }

  var unsent: Int { output.count - sent }

  /// Runs one turn, as the server does.
  func turn(_ log: EventLog) {
    let before = output.count
    if !subscription.isCurrent(log) {
      if unsent < Bound.eventBytesPerTurn {
        subscription.fill(&output, from: sent, log, isVisible: { isVisible($0.audience) })
      } else {
        subscription.count(unsent, log, isVisible: { isVisible($0.audience) })
      }
    }
    added = output[before...]
  }

  /// Reads output as the client.
  func read(_ count: Int = .max) {
    sent += min(count, unsent)
    guard sent == output.count else { return }
    output = []
    sent = 0
  }

  /// Adds a reply of this number of bytes to the output.
  func reply(_ count: Int) { output += [UInt8](repeating: 46, count: count) }

  /// Reads as the client until nothing is left, in at most `turns` turns.
  func readAll(_ log: EventLog, turns: Int = 10_000) -> [Line] {
    var lines: [Line] = []
    for _ in 0..<turns where unsent > 0 || !subscription.isCurrent(log) {
      read()
      turn(log)
      lines += Self.lines(in: added)
    }
    return lines
  }

  /// Appends events while the client reads nothing.
  func append(_ count: Int, _ topic: Topic = .devices, length: Int = 0, to log: inout EventLog) {
    for _ in 0..<count {
      log.append(1, topic, length: length)
      turn(log)
    }
  }

  static func lines(in bytes: ArraySlice<UInt8>) -> [Line] {
    bytes.split(separator: UInt8(ascii: "\n")).compactMap { line in
      guard line.starts(with: "EVENT ".utf8) else { return nil }
      let words = String(decoding: line.prefix(100), as: UTF8.self).split(separator: " ")
      guard words.count > 3, let sequence = Int64(words[1]) else { return nil }
      guard words[2] == "lag" else { return .event(sequence) }
      let numbers = words[3...].compactMap { $0.split(separator: "=").last.flatMap { Int64($0) } }
      return numbers.count == 2 ? .lag(sequence: sequence, missed: numbers[0], from: numbers[1]) : nil
    }
  }
}
