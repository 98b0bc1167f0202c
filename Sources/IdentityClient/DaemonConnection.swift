import IdentityCore
package import IdentityWire
import LinuxSystem

/// A blocking connection to the daemon: one request, then its answer.
package struct DaemonConnection: ~Copyable {
  /// What goes wrong between a client and the daemon; a refusal is an answer and not among these.
  package enum Failure: Error, Equatable, CustomStringConvertible {
    /// Nobody listens there.
    case unreachable(path: String, reason: String)
    /// The connection ended before the answer was whole.
    case closed
    /// What came is not the protocol.
    case malformed(String)

    /// The cause, and for an unreachable daemon what to start.
    package var description: String {
      switch self {
      case .unreachable(let path, let reason):
        "no identityd at \(path) (\(reason)); start it with 'systemctl start identityd.socket', or name another with --socket"
      case .closed: "the daemon closed the connection before its answer was whole"
      case .malformed(let line): "the daemon sent a line that is not the protocol: \(line)"
      }
    }
  }

  /// An answer as it came: the rows, and the final line.
  package struct Answer: Equatable, Sendable {
    /// The rows in order.
    package var rows: [ReplyLine.Content] = []
    /// The final line: `ok` or `error`.
    package let final: ReplyLine
  }

  private let socket: Descriptor
  private var received: [UInt8] = []
  private var chunk = [UInt8](repeating: 0, count: 65_536)

  /// Where the daemon is looked for: `IDENTITYD_SOCKET`, else the system's socket, else the user's own where only that is
  /// there.
  package static var defaultPath: String {
    if let path = Environment["IDENTITYD_SOCKET"] { return path }
    let system = "/run/identityd/identityd.sock"
    guard UnixSocket.identity(of: system) == nil, let runtime = Environment["XDG_RUNTIME_DIR"] else { return system }
    let own = "\(runtime)/identityd/identityd.sock"
    return UnixSocket.identity(of: own) == nil ? system : own
  }

  /// Connects.
  package init(path: String) throws(Failure) {
    do {
      socket = try UnixSocket.connect(to: path)
    } catch {
      throw .unreachable(path: path, reason: SystemError.text(of: error.code))
    }
  }

  /// Sends one request line, its end not among the bytes, and waits for the whole answer.
  package mutating func ask(_ request: [UInt8]) throws(Failure) -> Answer {
    // Where the daemon has refused already and closed, its reason is there to be read all the same.
    try? socket.sendAll(request + [UInt8(ascii: "\n")])
    var rows: [ReplyLine.Content] = []
    while true {
      let line = try nextLine()
      guard let parsed = ReplyLine(line) else { throw .malformed(String(decoding: line, as: UTF8.self)) }
      if case .row(let content) = parsed { rows.append(content) } else { return Answer(rows: rows, final: parsed) }
    }
  }

  private mutating func nextLine() throws(Failure) -> [UInt8] {
    var searched = 0
    while true {
      if let end = received[searched...].firstIndex(of: UInt8(ascii: "\n")) {
        defer { received.removeSubrange(...end) }
        return Array(received[..<end])
      }
      searched = received.count
      do {
        guard let count = try socket.read(into: &chunk), count > 0 else { throw Failure.closed }
        received += chunk[..<count]
      } catch {
        throw .closed
      }
    }
  }
}

extension DaemonConnection {
  /// Writes words as a request: an argument `name=value` whose name the verb knows is an attribute, anything else an
  /// operand, quoted where a bare word would not be read as one.
  ///
  /// For a verb that this client does not know, whatever looks like an attribute is one.
  package static func request(_ words: [String]) -> [UInt8] {
    let texts = words.map { Text($0) }
    let verb = (1...2).reversed().lazy.compactMap { count in
      VerbTable.verbs.first { verb in
        verb.words.utf8.elementsEqual(words.prefix(count).joined(separator: " ").lowercased().utf8)
      }
    }.first
    var line: [UInt8] = []
    for text in texts {
      if !line.isEmpty { line.append(UInt8(ascii: " ")) }
      if let (name, value) = attribute(text, of: verb) {
        line += name + [UInt8(ascii: "=")]
        WordEncoder.append(value: value, to: &line)
      } else {
        WordEncoder.append(word: text.bytes, to: &line)
      }
    }
    return line
  }

  private static func attribute(_ text: Text, of verb: Verb?) -> (name: [UInt8], value: [UInt8])? {
    guard let mark = text.bytes.firstIndex(of: UInt8(ascii: "=")), WordEncoder.looksLikeAttribute(text.bytes) else {
      return nil
    }
    let name = Array(text.bytes[..<mark])
    // A verb with a free operand and no such attribute means the operand: `check a=b`.
    if let verb, !verb.operands.isEmpty, !verb.attributes.contains(where: { $0.name.utf8.elementsEqual(name) }) {
      return nil
    }
    return (name, Array(text.bytes[(mark + 1)...]))
  }
}
