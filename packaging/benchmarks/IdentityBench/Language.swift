import Foundation

/// Sample answers of identityd. The other servers answer with as many bytes.
struct Answers {
  /// The answer to `get device`, without its line feed.
  let text: String
  /// The line that subscribers receive for a change, without its line feed.
  let event: String

  /// The request that is measured most.
  var read: Question { Question("get device\n", reply: text + "\n") }
}

/// The protocol of a server. All servers get the same requests, each in its own protocol.
enum Language {
  /// The protocol of identityd, which the limit server speaks too.
  case lines
  /// RESP, version 2.
  case redis
  /// The text protocol of memcached.
  case memcached
  /// Requests of one byte.
  case uuidd
  /// MQTT 3.1.1.
  case mqtt
  /// D-Bus, to a service behind a bus.
  case dbus

  /// UUIDD_OP_RANDOM_UUID. The reply is the length 16 and the UUID.
  static let randomUUID = Question([3], reply: [16, 0, 0, 0] + Array(repeating: 0, count: 16), varyingEnd: 16)
  /// A token of 32 bytes that is never the same twice.
  private static let token = "token-of-the-bench--" + Question.varying

  /// Returns the question for a small value that is stored already. Nil if the server has nothing comparable.
  ///
  /// - Parameter server: gets the value first, if it stores values.
  func read(_ answers: Answers, on server: MeasuredServer) throws -> Question? {
    let value = Array(answers.text.utf8)
    switch self {
    case .lines: return answers.read
    case .redis:
      try told(server, Redis.request("SET", "device", answers.text), "+OK\r\n")
      return Question(Redis.request("GET", "device"), reply: Redis.bulk(value))
    case .memcached:
      try told(server, Array("set device 0 0 \(value.count)\r\n\(answers.text)\r\n".utf8), "STORED\r\n")
      return Question("get device\r\n", reply: "VALUE device 0 \(value.count)\r\n\(answers.text)\r\nEND\r\n")
    case .uuidd: return Self.randomUUID
    case .dbus:
      // The service got its answer at its start.
      let reply = try Question.answer(to: DBus.get, greeting: greeting(of: server), from: server)
      return Question(DBus.get, reply: reply, varyingEnd: reply.count - DBus.same)
    case .mqtt: return nil
    }
  }

  /// Returns the question that replaces a value of 32 bytes, with a separate key for each connection. Nil if the server
  /// has nothing comparable.
  ///
  /// - Parameter connections: the number of keys. identityd gets a first value for each key.
  func change(connections: Int, on server: MeasuredServer) throws -> Question? {
    switch self {
    case .lines:
      let request = "token put bench\(Question.key) \(Self.token)\n"
      try firstTokens(connections, server)
      let first = request.replacing(Question.key, with: "000")
      var question = try Question(first, asking: server, varyingEnd: Self.token.utf8.count + 1)
      guard question.reply.starts(with: Array("OK replaced device=".utf8)) else {
        throw Failure("no token is replaced")
      }
      question.request = Array(request.utf8)
      return question
    case .redis:
      return Question(Redis.request("SET", "bench\(Question.key)", Self.token), reply: Array("+OK\r\n".utf8))
    case .memcached, .uuidd, .mqtt, .dbus: return nil
    }
  }

  /// Stores the first tokens, because identityd answers otherwise if there was no token before.
  private func firstTokens(_ connections: Int, _ server: MeasuredServer) throws {
    let first = Self.token.replacing(Question.varying, with: "first-token-")
    let lines = (0..<connections).map { "token put bench\(String(format: "%03d", $0)) \(first)\n" }.joined()
    try server.connect().ask(Array(lines.utf8), replies: connections)
  }

  private func told(_ server: MeasuredServer, _ request: [UInt8], _ reply: String) throws {
    guard try Question.answer(to: request, from: server) == Array(reply.utf8) else {
      throw Failure("\(server.name) does not take a value")
    }
  }
}

/// Requests to Redis.
enum Redis {
  /// Returns a request of some words.
  static func request(_ words: String...) -> [UInt8] {
    Array("*\(words.count)\r\n".utf8) + words.flatMap { bulk(Array($0.utf8)) }
  }

  /// Returns a value that begins with its length.
  static func bulk(_ bytes: [UInt8]) -> [UInt8] { Array("$\(bytes.count)\r\n".utf8) + bytes + Array("\r\n".utf8) }
}

/// Packets to and from an MQTT broker.
enum MQTT {
  /// CONNECT: version 3.1.1, a clean session, no keep-alive, and a client ID that the broker chooses.
  static let connect = packet(0x10, text("MQTT") + [4, 2, 0, 0] + text(""))
  /// CONNACK: accepted.
  static let connected: [UInt8] = [0x20, 2, 0, 0]
  /// SUBSCRIBE to one topic, at most once.
  static let subscribe = packet(0x82, [0, 1] + text("bench") + [0])
  /// SUBACK: at most once.
  static let subscribed: [UInt8] = [0x90, 3, 0, 1, 0]

  /// PUBLISH on that topic, at most once. There is no reply, and subscribers receive the same bytes.
  static func publish(_ content: [UInt8]) -> [UInt8] { packet(0x30, text("bench") + content) }

  private static func text(_ text: String) -> [UInt8] { [0, UInt8(text.utf8.count)] + Array(text.utf8) }

  private static func packet(_ kind: UInt8, _ content: [UInt8]) -> [UInt8] {
    var length: [UInt8] = []
    var rest = content.count
    repeat {
      length.append(UInt8(rest % 128) | (rest >= 128 ? 128 : 0))
      rest /= 128
    } while rest > 0
    return [kind] + length + content
  }
}
