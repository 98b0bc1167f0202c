import IdentityCore
import IdentityWire

/// The position of a follower in the daemon's events, which ensures that each event comes once and none is left out.
///
/// The position is a value without I/O: it interprets answers and events, and composes the next request.
struct EventPosition {
  /// The meaning of an answer to ``request``.
  enum AnswerMeaning: Equatable {
    /// Events follow.
    case following
    /// Some of the wanted events are gone. The next ``request`` asks for events from now on.
    case missed(EventFollower.Missed)
    /// The daemon has no room for the connection now.
    case busy(Text)
    /// The daemon refuses to send the events.
    case refused(code: Text, text: Text)
    /// The line is not an answer to the request.
    case malformed
  }

  /// The meaning of an event.
  enum EventMeaning: Equatable {
    case new
    /// The event was received before.
    case known
    /// A lag line: other events were left out and must be requested again.
    case behind
  }

  /// The topics; empty for all.
  private let topics: [String]
  /// The number of the last event received, or of the last one before the subscription; nil if unknown.
  private(set) var last: Int64?
  /// The epoch of ``last``; nil if unknown.
  private(set) var epoch: Text?
  private var hasFollowed = false

  init(_ topics: [String], since: Int64?, epoch: Text? = nil) {
    self.topics = topics
    last = since
    self.epoch = epoch
  }

  /// The request for a new connection.
  var request: RequestLine {
    var words = ["subscribe"] + topics
    if let last {
      words.append("since=\(last)")
      if let epoch { words.append("epoch=\(epoch)") }
    }
    return RequestLine(words: words)
  }

  /// Interprets an answer to ``request``, and moves to the position that it names.
  mutating func interpret(_ answer: DaemonConnection.Answer) -> AnswerMeaning {
    switch answer.final {
    case .ok(let content):
      guard let sequence = content.words.first.flatMap({ Int64($0.description) }) else { return .malformed }
      // With `since=`, only received events advance the position, regardless of the number in the reply.
      if last == nil { last = sequence }
      epoch = content["epoch"]
      hasFollowed = true
      return .following
    case .error(code: "gone", let text) where last != nil:
      last = nil
      return .missed(.notKept(text))
    // The daemon rejects a number that it has assigned itself, so it has a new store.
    case .error(code: "bad-argument", _) where hasFollowed && last != nil:
      defer { last = nil }
      return .missed(.numberedAnew(after: last ?? 0))
    case .error(code: "busy", let text): return .busy(text)
    case .error(let code, let text): return .refused(code: code, text: text)
    case .row, .event: return .malformed
    }
  }

  /// Interprets an event, and moves behind it.
  mutating func interpret(_ event: ReceivedEvent) -> EventMeaning {
    let last = last ?? 0
    if let from = event.lagFrom {
      // All events up to `from` have arrived.
      self.last = max(last, from)
      return .behind
    }
    guard event.sequence > last else { return .known }
    self.last = event.sequence
    return .new
  }
}
