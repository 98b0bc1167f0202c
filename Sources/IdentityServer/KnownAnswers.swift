import IdentityCore
import IdentityWire
import LinuxSystem

/// Answers as they were sent last: the same question of the same peer has the same answer as long as nothing has changed.
///
/// Who a connection belongs to never changes, so the rights of a peer are part of who asks. Whatever else an answer rests
/// on, the registry above all, makes all of them forgotten when it changes. No answer with a secret is among them.
final class KnownAnswers {
  /// Names a peer among those who asked: no other one ever has the same number. 0 is nobody's.
  typealias PeerNumber = UInt64

  private struct Slot {
    var peer: PeerNumber = 0
    /// What of ``edition`` it was true under.
    var edition: UInt64 = 0
    var lineLength = 0
    var answerLength = 0
    /// The place of its verb.
    var verb = 0
  }

  /// A power of two.
  private static let slots = 128
  /// A question and its answer together, in bytes.
  private static let slotLength = 256
  /// Answers that are given together, in bytes.
  private static let outputLength = 16_384
  /// A power of two.
  private static let peers = 16

  private let slots = Slots(repeating: Slot(), count: KnownAnswers.slots)
  /// The question and behind it the answer, a slot after the other.
  private let bytes = ByteBuffer(count: KnownAnswers.slots * KnownAnswers.slotLength)
  private var edition: UInt64 = 1
  /// How often an answer was given, by the place of the verb.
  private let counts = Slots<UInt64>(repeating: 0, count: VerbTable.verbs.count)
  /// The answers to what was asked last.
  let output = ByteBuffer(count: KnownAnswers.outputLength)
  /// Who asked, by the number of the process.
  private var peers = [(peer: Peer, number: PeerNumber)?](repeating: nil, count: KnownAnswers.peers)
  private var lastPeer: PeerNumber = 0

  /// Something has changed that an answer may rest on.
  func forgetAll() { edition += 1 }

  /// The number of a peer: the same for one that is in nothing different.
  func number(of peer: Peer) -> PeerNumber {
    let place = Int(peer.processID) & (Self.peers - 1)
    if let known = peers[place], known.peer == peer { return known.number }
    lastPeer += 1
    peers[place] = (peer, lastPeer)
    return lastPeer
  }

  /// Answers requests at the front of bytes as long as their answers are known: they are then at the front of ``output``.
  ///
  /// - Parameter limit: how many may be answered.
  /// - Returns: how many bytes the requests took, how many the answers, and how many of them there are.
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
      let place = place(of: line, peer)
      let slot = slots[place]
      guard slot.lineLength == line.count, slot.peer == peer, slot.edition == edition,
        bytes.isEqual(to: line, at: place * Self.slotLength)
      else { break }
      output.replace(
        from: length, with: bytes, from: place * Self.slotLength + slot.lineLength, count: slot.answerLength)
      length += slot.answerLength
      used = end + 1
      counts[slot.verb] &+= 1
      count += 1
    }
    return (used, length, count)
  }

  /// How often an answer to this verb was given.
  func count(ofVerb place: Int) -> UInt64 { counts[place] }

  /// Remembers an answer: the output from a place on.
  ///
  /// - Parameter verb: the place of its verb.
  func keep(_ line: borrowing Span<UInt8>, verb: Int, of peer: PeerNumber, _ output: [UInt8], from start: Int) {
    let length = output.count - start
    guard line.count > 0, length > 0, line.count + length <= Self.slotLength else { return }
    let place = place(of: line, peer)
    bytes.replace(from: place * Self.slotLength, with: line)
    bytes.replace(from: place * Self.slotLength + line.count, with: output.span.extracting(start...))
    slots[place] = Slot(peer: peer, edition: edition, lineLength: line.count, answerLength: length, verb: verb)
  }

  private func place(of line: borrowing Span<UInt8>, _ peer: PeerNumber) -> Int {
    let hash = (line.mark ^ peer) &* 0x9e37_79b9_7f4a_7c15
    return Int(truncatingIfNeeded: hash >> 40) & (Self.slots - 1)
  }
}

extension Command {
  /// Whether it is answered the same until something changes: no clock and no chance is in the answer, and no secret.
  var hasStandingAnswer: Bool {
    switch self {
    case .local(.ping), .local(.hello), .local(.whoami), .local(.derived), .registry(.get): true
    case .local, .registry, .store: false
    }
  }
}
