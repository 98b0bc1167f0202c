import IdentityCore
import IdentityWire
import LinuxSystem

/// A cache of encoded answers by peer and request line.
///
/// The peer of a connection never changes, so its rights are part of the key. A change of anything else that an answer
/// depends on, above all of the registry, invalidates the whole cache. Answers with a secret are never cached.
final class KnownAnswers {
  /// A number that identifies a peer. Numbers are never reused, and 0 belongs to no peer.
  typealias PeerNumber = UInt64

  private struct Slot {
    var peer: PeerNumber = 0
    /// The value of ``edition`` when the answer was cached.
    var edition: UInt64 = 0
    var lineLength = 0
    var answerLength = 0
    /// The index of the verb in ``VerbTable/verbs``.
    var verb = 0
  }

  /// The number of slots, a power of two.
  private static let slots = 128
  /// The maximum length of a request line and its answer together, in bytes.
  private static let slotLength = 256
  /// The maximum length of the answers to one batch of requests, in bytes.
  private static let outputLength = 16_384
  /// The number of remembered peers, a power of two.
  private static let peers = 16

  private let slots = Slots(repeating: Slot(), count: KnownAnswers.slots)
  /// For each slot, the request line followed by the answer.
  private let bytes = ByteBuffer(count: KnownAnswers.slots * KnownAnswers.slotLength)
  private var edition: UInt64 = 1
  /// The number of answers from the cache, by the index of the verb.
  private let counts = Slots<UInt64>(repeating: 0, count: VerbTable.verbs.count)
  /// The answers to the last batch of requests.
  let output = ByteBuffer(count: KnownAnswers.outputLength)
  /// The peers with a number, by the low bits of the PID.
  private var peers = [(peer: Peer, number: PeerNumber)?](repeating: nil, count: KnownAnswers.peers)
  private var lastPeer: PeerNumber = 0

  /// Invalidates all answers, because something changed that they may depend on.
  func forgetAll() { edition += 1 }

  /// Returns the number of a peer. Only equal peers have the same number.
  func number(of peer: Peer) -> PeerNumber {
    let index = Int(peer.processID) & (Self.peers - 1)
    if let known = peers[index], known.peer == peer { return known.number }
    lastPeer += 1
    peers[index] = (peer, lastPeer)
    return lastPeer
  }

  /// Answers requests from the cache, up to the first request without a cached answer. The answers are put
  /// into ``output``.
  ///
  /// - Parameter limit: the maximum number of requests to answer.
  /// - Returns: the number of bytes of the requests, the number of bytes of the answers, and the number of requests.
  func answer(
    _ requests: borrowing Span<UInt8>, of peer: PeerNumber, atMost limit: Int
  ) -> (used: Int, length: Int, count: Int) {
    var used = 0
    var length = 0
    var count = 0
    while count < limit {
      guard length <= Self.outputLength - Self.slotLength,
        let end = requests.firstIndex(of: UInt8(ascii: "\n"), from: used)
      else { break }
      let hasReturn = end > used && requests[end - 1] == UInt8(ascii: "\r")
      let line = requests.extracting(used..<(hasReturn ? end - 1 : end))
      let index = index(of: line, peer)
      let slot = slots[index]
      guard slot.lineLength == line.count, slot.peer == peer, slot.edition == edition,
        bytes.isEqual(to: line, at: index * Self.slotLength)
      else { break }
      output.replace(
        from: length, with: bytes, from: index * Self.slotLength + slot.lineLength, count: slot.answerLength)
      length += slot.answerLength
      used = end + 1
      counts[slot.verb] &+= 1
      count += 1
    }
    return (used, length, count)
  }

  /// Returns the number of answers from the cache to a verb.
  func count(ofVerb index: Int) -> UInt64 { counts[index] }

  /// Caches an answer: the output from an index on.
  ///
  /// - Parameter verb: the index of the verb in ``VerbTable/verbs``.
  func keep(_ line: borrowing Span<UInt8>, verb: Int, of peer: PeerNumber, _ output: [UInt8], from start: Int) {
    let length = output.count - start
    guard line.count > 0, length > 0, line.count + length <= Self.slotLength else { return }
    let index = index(of: line, peer)
    bytes.replace(from: index * Self.slotLength, with: line)
    bytes.replace(from: index * Self.slotLength + line.count, with: output.span.extracting(start...))
    slots[index] = Slot(peer: peer, edition: edition, lineLength: line.count, answerLength: length, verb: verb)
  }

  private func index(of line: borrowing Span<UInt8>, _ peer: PeerNumber) -> Int {
    let hash = (line.mark ^ peer) &* 0x9e37_79b9_7f4a_7c15
    return Int(truncatingIfNeeded: hash >> 40) & (Self.slots - 1)
  }
}

extension Command {
  /// Whether the answer stays the same until something changes: it contains no time, no random value and no secret.
  var hasStandingAnswer: Bool {
    switch self {
    case .local(.ping), .local(.hello), .local(.whoami), .local(.derived): true
    case .registry(let command): command.rule.answerKind == .standing
    case .local, .store: false
    }
  }
}
