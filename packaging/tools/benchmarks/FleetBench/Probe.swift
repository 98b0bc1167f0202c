import Glibc
import LinuxSystem

/// A plain client, which publishes much or reads everything.
final class Probe {
  private let poller: Poller
  private let link: Link

  init(_ port: UInt16, _ security: TransportSecurity? = nil) throws {
    poller = try Poller()
    link = try Link(
      to: port, security, number: 0, poller, client: "probe\(UInt64.random(in: 0...UInt64.max))", keepAlive: 0,
      will: nil)
    try wait(for: 5) { if case .accepted(0) = $0 { true } else { false } }
  }

  /// Returns whether a broker accepts a connection and a subscription.
  static func answers(_ port: UInt16, _ security: TransportSecurity?) throws -> Bool {
    guard let probe = try? Probe(port, security) else { return false }
    return (try? probe.retained("identityd/v1/+/d/+/+", quiet: 0.2)) != nil
  }

  /// Publishes retained messages, of which at most some are unacknowledged at a time.
  func publish(_ count: Int, window: Int, _ message: (Int) -> (topic: String, payload: [UInt8])) throws {
    var (sent, acknowledged) = (0, 0)
    while acknowledged < count {
      while sent < count, sent - acknowledged < window {
        let (topic, payload) = message(sent)
        link.send(Packet.publish(topic, payload, identifier: link.nextIdentifier(), isRetained: true))
        sent += 1
      }
      for packet in try exchange(1_000) { if case .acknowledged = packet { acknowledged += 1 } }
    }
  }

  /// Returns the number of retained messages on the topics of a filter.
  ///
  /// - Parameter quiet: the silence in seconds after which the messages count as complete.
  func retained(_ filter: String, quiet: Double) throws -> Int {
    link.send(Packet.subscribe(filter, identifier: link.nextIdentifier()))
    var isSubscribed = false
    var count = 0
    var last = Clock.monotonicMicroseconds
    while !isSubscribed || Double(Clock.monotonicMicroseconds - last) < quiet * 1e6 {
      for packet in try exchange(50) {
        last = Clock.monotonicMicroseconds
        switch packet {
        case .subscribed: isSubscribed = true
        case .message(_, let payload, isRetained: true): count += payload.isEmpty ? 0 : 1
        case .accepted, .acknowledged, .message, .other: break
        }
      }
      guard Double(Clock.monotonicMicroseconds - last) < 30e6 else { throw BenchError("no answer to a subscription") }
    }
    return count
  }

  private func wait(for seconds: Double, _ isWanted: (BrokerPacket) -> Bool) throws {
    let deadline = Clock.monotonicMicroseconds + UInt64(seconds * 1e6)
    while Clock.monotonicMicroseconds < deadline {
      if try exchange(50).contains(where: isWanted) { return }
    }
    throw BenchError("the broker does not answer")
  }

  private func exchange(_ milliseconds: Int32) throws -> [BrokerPacket] {
    guard link.flush() else { throw BenchError("the broker ended the connection") }
    guard try !poller.wait(milliseconds: milliseconds).isEmpty else { return [] }
    guard let packets = try link.exchange() else { throw BenchError("the broker ended the connection") }
    return packets
  }
}
