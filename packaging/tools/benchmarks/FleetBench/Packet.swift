/// The packets of MQTT 3.1.1 that a device sends, as bytes.
enum Packet {
  /// The longest text and the longest packet of a simulated device.
  static let mostBytes = 1 << 20

  /// Asks for a session that ends with the connection (section 3.1).
  static func connect(_ client: String, keepAlive: UInt16, will: (topic: String, payload: [UInt8])?) -> [UInt8] {
    var body = text("MQTT") + [4, 2 | (will == nil ? 0 : 4)] + number(keepAlive) + text(client)
    if let will { body += text(will.topic) + number(UInt16(will.payload.count)) + will.payload }
    return packet(0x10, body)
  }

  /// Publishes a message (section 3.3): with quality of service 1 if it has an identifier.
  static func publish(_ topic: String, _ payload: [UInt8], identifier: UInt16?, isRetained: Bool) -> [UInt8] {
    let flags: UInt8 = (identifier == nil ? 0 : 2) | (isRetained ? 1 : 0)
    return packet(0x30 | flags, text(topic) + (identifier.map(number) ?? []) + payload)
  }

  /// Subscribes to topics with quality of service 0 (section 3.8).
  static func subscribe(_ filter: String, identifier: UInt16) -> [UInt8] {
    packet(0x82, number(identifier) + text(filter) + [0])
  }

  /// Asks for a sign of life (section 3.12).
  static let ping = packet(0xc0, [])

  private static func packet(_ head: UInt8, _ body: [UInt8]) -> [UInt8] {
    var length: [UInt8] = []
    var rest = body.count
    repeat {
      length.append(UInt8(rest % 128) | (rest >= 128 ? 128 : 0))
      rest /= 128
    } while rest > 0
    return [head] + length + body
  }

  private static func text(_ text: String) -> [UInt8] { number(UInt16(text.utf8.count)) + Array(text.utf8) }
  private static func number(_ number: UInt16) -> [UInt8] { [UInt8(number >> 8), UInt8(number & 255)] }
}

/// A packet from the broker.
enum BrokerPacket {
  /// The broker accepts the connection, or refuses it with this code.
  case accepted(code: UInt8)
  /// The subscription with this identifier is in force.
  case subscribed(UInt16)
  /// The publication with this identifier has arrived.
  case acknowledged(UInt16)
  /// A message.
  case message(topic: String, payload: [UInt8], isRetained: Bool)
  /// Anything else, such as the answer to a ping.
  case other

  /// Takes the first whole packet out of received bytes; nil if there is none.
  ///
  /// - Parameter place: the place of the packet, which moves to its end.
  /// - Throws: ``BenchError`` for bytes that are no packet.
  init?(from bytes: [UInt8], at place: inout Int) throws {
    var (length, shift, next) = (0, 0, place + 1)
    while true {
      guard next < bytes.count else { return nil }
      length |= Int(bytes[next] & 127) << shift
      next += 1
      if bytes[next - 1] < 128 { break }
      shift += 7
      guard shift < 28 else { throw BenchError("a packet has no length") }
    }
    guard length <= Packet.mostBytes else { throw BenchError("a packet has \(length) bytes") }
    guard next + length <= bytes.count else { return nil }
    let body = bytes[next..<(next + length)]
    defer { place = next + length }
    func number(_ offset: Int) throws -> UInt16 {
      guard length >= offset + 2 else { throw BenchError("a packet is too short") }
      return UInt16(body[next + offset]) << 8 | UInt16(body[next + offset + 1])
    }
    switch bytes[place] & 0xf0 {
    case 0x20: self = .accepted(code: UInt8(truncatingIfNeeded: try number(0)))
    case 0x30:
      let end = 2 + Int(try number(0))
      let start = end + (bytes[place] & 6 == 0 ? 0 : 2)
      guard start <= length else { throw BenchError("a message is too short") }
      self = .message(
        topic: String(decoding: body[(next + 2)..<(next + end)], as: UTF8.self),
        payload: Array(body[(next + start)...]), isRetained: bytes[place] & 1 == 1)
    case 0x40: self = .acknowledged(try number(0))
    case 0x90: self = .subscribed(try number(0))
    default: self = .other
    }
  }
}
