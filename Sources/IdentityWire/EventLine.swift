package import IdentityCore

/// A published event as the line that its subscribers get, with the facts that select the subscribers.
///
/// The writer makes the line once. The store keeps it, and every subscriber and every replay gets the same bytes.
package struct EventLine: Equatable, Sendable {
  /// The sequence number of the event, from 1.
  package let sequence: Int64
  /// The subject of the event.
  package let topic: Topic
  /// The peers that may see the event.
  package let audience: Audience
  /// The line with its LF.
  package let bytes: [UInt8]

  /// Encodes an event.
  package init(_ event: Event) {
    sequence = event.sequence
    topic = event.topic
    audience = event.audience
    var bytes: [UInt8] = []
    event.append(to: &bytes)
    self.bytes = bytes
  }

  /// Decodes a line that ``init(_:)`` made; nil if the bytes are no such line.
  ///
  /// - Parameters:
  ///   - line: the line with its LF.
  ///   - audience: the peers that may see the event, which the line does not tell.
  package init?(_ line: ArraySlice<UInt8>, for audience: Audience) {
    let space = UInt8(ascii: " ")
    let begin = Event.begin.bytes
    guard line.span.begins(with: begin.span), line.last == UInt8(ascii: "\n") else { return nil }
    let number = line.dropFirst(begin.count).prefix { $0 != space }
    let topic = line[number.endIndex...].dropFirst().prefix { $0 != space }
    guard let sequence = Self.number(number), let topic = Topic(text: topic) else { return nil }
    self.sequence = sequence
    self.topic = topic
    self.audience = audience
    bytes = Array(line)
  }

  private static func number(_ digits: ArraySlice<UInt8>) -> Int64? {
    guard !digits.isEmpty, digits.count < 20 else { return nil }
    var number: UInt64 = 0
    for digit in digits {
      guard case UInt8(ascii: "0")...UInt8(ascii: "9") = digit else { return nil }
      number = number * 10 + UInt64(digit - UInt8(ascii: "0"))
    }
    return Int64(exactly: number)
  }

  /// The time of the event, with which each line ends; nil if the line does not end with a time.
  package var time: Timestamp? {
    guard bytes.count > Timestamp.textLength else { return nil }
    let end = bytes.count - 1
    return Timestamp(parsing: bytes.span.extracting(end - Timestamp.textLength..<end))
  }
}

extension Topic {
  /// The topic with a name; nil if there is none.
  fileprivate init?(text: ArraySlice<UInt8>) {
    let name = text.span
    for topic in Self.allCases {
      let known = topic.text.bytes
      if known.count == name.count, name.begins(with: known.span) {
        self = topic
        return
      }
    }
    return nil
  }
}

extension [RecordedChange] {
  /// The lines of the events of these changes, in order.
  package var events: [EventLine] { compactMap { $0.event.map { EventLine($0) } } }
}
