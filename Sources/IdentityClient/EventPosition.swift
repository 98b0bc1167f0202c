import IdentityCore
import IdentityWire

/// How far a follower has come in the daemon's events, and what that means for what comes next: each event once, and none
/// left out. It waits for nothing and asks nobody.
struct EventPosition {
  /// What an answer to the request means.
  enum Subscribed: Equatable {
    /// Events come.
    case following
    /// Some that were wanted cannot be had; the next request asks for what happens from now on.
    case missed(EventFollower.Missed)
    /// The daemon has no room now.
    case busy(Text)
    /// It will not.
    case refused(code: Text, text: Text)
    /// It is no answer to that request.
    case malformed
  }

  /// What an event means.
  enum Taken: Equatable {
    case new
    /// It was seen already.
    case known
    /// It says that others were left out: ask for them.
    case behind
  }

  /// Nothing for all topics.
  private let topics: [String]
  /// The last event seen, or known to have happened before; nil where that is not known.
  private(set) var last: Int64?
  /// The epoch that its number is of; nil where that is not known.
  private(set) var epoch: Text?
  private var hasFollowed = false

  init(_ topics: [String], since: Int64?, epoch: Text? = nil) {
    self.topics = topics
    last = since
    self.epoch = epoch
  }

  /// What to ask the daemon on a fresh connection.
  var request: [UInt8] {
    var words = ["subscribe"] + topics
    if let last {
      words.append("since=\(last)")
      if let epoch { words.append("epoch=\(epoch)") }
    }
    return DaemonConnection.request(words)
  }

  mutating func take(_ answer: DaemonConnection.Answer) -> Subscribed {
    switch answer.final {
    case .ok(let content):
      guard let sequence = content.words.first.flatMap({ Int64($0.description) }) else { return .malformed }
      // Behind `since=` nothing is passed over before it has come, whatever number the daemon names.
      if last == nil { last = sequence }
      epoch = content["epoch"]
      hasFollowed = true
      return .following
    case .error(code: "gone", let text) where last != nil:
      last = nil
      return .missed(.notKept(text))
    // A daemon that never came so far is not the one that said so.
    case .error(code: "bad-argument", _) where hasFollowed && last != nil:
      defer { last = nil }
      return .missed(.numberedAnew(after: last ?? 0))
    case .error(code: "busy", let text): return .busy(text)
    case .error(let code, let text): return .refused(code: code, text: text)
    case .row, .event: return .malformed
    }
  }

  mutating func take(_ event: ReceivedEvent) -> Taken {
    let last = last ?? 0
    if let from = event.lagFrom {
      // All up to there has come.
      self.last = max(last, from)
      return .behind
    }
    guard event.sequence > last else { return .known }
    self.last = event.sequence
    return .new
  }
}
