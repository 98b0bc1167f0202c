import FleetWire
import TestSupport

/// A broker that keeps retained messages. While it lies, it drops, forgets, repeats, reorders and replays them.
///
/// It acknowledges whatever it is sent, which is why the rules have no input for it.
struct PlayedBroker {
  /// A packet from the broker to a device.
  enum Packet {
    case message(text: String, bytes: [UInt8], isRetained: Bool)
    case subscribed(TopicFilter)
  }

  /// How often the broker lies: once in so many times.
  struct Lies {
    var dropped = 6
    var unretained = 6
    var omitted = 8
    var repeated = 8
    var unacknowledged = 40
    /// The longest delay of a message, in milliseconds. Messages overtake each other.
    var delay = 3_000
    /// Whether damage makes a message look as if a later release had written it, or a member in a later epoch. Its author
    /// alone puts that right.
    var damagesVersions = true
  }

  /// A node of a cluster that shows its devices what was retained at some time, and nothing later.
  struct StaleNode {
    /// The connections with the node.
    let links: Set<Int>
    let retained: [String: [UInt8]]
    /// Whether the node is cut off from the others, so that its devices get no live messages of others.
    var isCutOff = true
  }

  /// A node that is out of date; nil for none.
  var stale: StaleNode?
  /// The lies; nil for an honest broker, which keeps the order.
  var lies: Lies?
  private(set) var retained: [String: [UInt8]] = [:]
  /// All messages that were published, from which a lying broker rolls back and replays.
  private var past: [(text: String, bytes: [UInt8])] = []
  private var subscriptions: [Int: Set<TopicFilter>] = [:]
  /// The time before which nothing may arrive on a connection of an honest broker.
  private var arrivals: [Int: Int] = [:]

  /// The packets to be delivered: the connection, the delay, and the packet.
  typealias Deliveries = [(link: Int, delay: Int, packet: Packet)]

  private mutating func delay(_ link: Int, _ now: Int, _ chance: inout SeededGenerator) -> Int {
    if let lies { return Int.random(in: 1...lies.delay, using: &chance) }
    let arrival = max(now + Int.random(in: 1...50, using: &chance), arrivals[link] ?? 0)
    arrivals[link] = arrival
    return arrival - now
  }

  mutating func publish(
    _ text: String, _ bytes: [UInt8], isRetained: Bool, now: Int, _ chance: inout SeededGenerator
  ) -> Deliveries {
    past.append((text, bytes))
    if let lies, chance.once(in: lies.dropped) { return [] }
    if isRetained, lies.map({ !chance.once(in: $0.unretained) }) ?? true {
      retained[text] = bytes.isEmpty ? nil : bytes
    }
    return deliver(text, bytes, now, &chance)
  }

  private mutating func deliver(
    _ text: String, _ bytes: [UInt8], _ now: Int, _ chance: inout SeededGenerator
  ) -> Deliveries {
    var deliveries: Deliveries = []
    for (link, filters) in subscriptions.sorted(by: { $0.key < $1.key })
    where filters.contains(where: { $0.covers(text) }) {
      if let lies, chance.once(in: lies.dropped) { continue }
      if let stale, stale.isCutOff, stale.links.contains(link) { continue }
      let packet = Packet.message(text: text, bytes: bytes, isRetained: false)
      for _ in 0...(lies.map { chance.once(in: $0.repeated) ? 1 : 0 } ?? 0) {
        deliveries.append((link, delay(link, now, &chance), packet))
      }
    }
    return deliveries
  }

  mutating func subscribe(
    _ link: Int, to filter: TopicFilter, now: Int, _ chance: inout SeededGenerator
  ) -> Deliveries {
    subscriptions[link, default: []].insert(filter)
    var deliveries: Deliveries = []
    if lies.map({ !chance.once(in: $0.unacknowledged) }) ?? true {
      deliveries.append((link, delay(link, now, &chance), .subscribed(filter)))
    }
    let shown = stale.flatMap { $0.links.contains(link) ? $0.retained : nil } ?? retained
    for (text, bytes) in shown.sorted(by: { $0.key < $1.key }) where filter.covers(text) {
      if let lies, chance.once(in: lies.omitted) { continue }
      deliveries.append(
        (link, delay(link, now, &chance), .message(text: text, bytes: bytes, isRetained: true)))
    }
    return deliveries
  }

  mutating func close(_ link: Int) {
    subscriptions[link] = nil
    arrivals[link] = nil
  }

  /// Does one thing that a broker must not do. Returns a description, and packets to be delivered.
  mutating func misbehave(now: Int, _ chance: inout SeededGenerator) -> (what: String, deliveries: Deliveries) {
    guard !past.isEmpty else { return ("nothing to lie about", []) }
    let (text, bytes) = chance.one(of: past)
    switch Int.random(in: 0..<10, using: &chance) {
    case 0:
      retained = [:]
      return ("forgets everything", [])
    case 1, 2:
      retained[text] = nil
      return ("forgets \(text.suffix(6))", [])
    case 3, 4:
      retained[text] = bytes
      return ("rolls back \(text.suffix(6))", [])
    case 5:
      var garbage = bytes
      let place = Int.random(in: garbage.indices, using: &chance)
      garbage[[2, 4, 5, 6, 7].contains(place) && lies?.damagesVersions != true ? 3 : place] ^= 1
      retained[text] = garbage
      return ("damages \(text.suffix(6))", deliver(text, garbage, now, &chance))
    case 6:
      retained[text] = nil
      return ("empties \(text.suffix(6))", deliver(text, [], now, &chance))
    case 7:
      let other = chance.one(of: past).text
      retained[other] = bytes
      return ("moves \(text.suffix(6)) to \(other.suffix(6))", deliver(other, bytes, now, &chance))
    default: return ("replays \(text.suffix(6))", deliver(text, bytes, now, &chance))
    }
  }
}

extension TopicFilter {
  /// Returns whether messages on a topic match the filter.
  func covers(_ text: String) -> Bool {
    let words = text.split(separator: "/", omittingEmptySubsequences: false)
    let pattern = self.text.split(separator: "/", omittingEmptySubsequences: false)
    return words.count == pattern.count && zip(words, pattern).allSatisfy { $1 == "+" || $0 == $1 }
  }
}
