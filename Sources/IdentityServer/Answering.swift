import IdentityCore
import IdentityWire
import LinuxSystem
import Systemd

extension Server {
  /// Answers one request line, or sends it to the writer.
  ///
  /// - Returns: false where it has to wait for the changes before it; it is then asked again.
  func answer(_ line: borrowing Span<UInt8>, _ connection: Connection) -> Bool {
    guard line.count > 0 else { return true }
    do {
      try parse(line)
      switch try table.command(parser, in: line) {
      case .local(let command):
        // Answers keep the order of the questions.
        guard connection.inFlight == 0 else { return false }
        try answer(command, connection)
      case .registry(let command):
        if connection.inFlight == 0, let reply = try registry.answer(command, for: connection.peer) {
          reply.append(to: &connection.output)
        } else {
          connection.inFlight += 1
          inbox.send(.job(Job(connection: connection.token, command: command, peer: connection.peer)))
        }
      }
    } catch {
      guard connection.inFlight == 0 else { return false }
      error.append(to: &connection.output)
    }
    return true
  }

  private func parse(_ line: borrowing Span<UInt8>) throws(Refusal) {
    do {
      try parser.parse(line)
    } catch {
      throw .syntax(error)
    }
  }

  private func answer(_ command: LocalCommand, _ connection: Connection) throws(Refusal) {
    switch command {
    case .ping: Reply.done.append(to: &connection.output)
    case .hello: Reply.hello.append(to: &connection.output)
    case .help(let words): try VerbTable.help(words).append(to: &connection.output)
    case .whoami: Reply.whoami(connection.peer).append(to: &connection.output)
    case .check(let text): Reply.check(text).append(to: &connection.output)
    case .status: status.append(to: &connection.output)
    case .uuids(let count, let version): try uuids(count: count, version).append(to: &connection.output)
    case .quit:
      Reply.done.append(to: &connection.output)
      connection.isClosing = true
    }
  }

  private func uuids(count: Int?, _ version: UUIDVersion) throws(Refusal) -> Reply {
    do {
      let now = Timestamp(milliseconds: Clock.realtimeMilliseconds)
      return try Reply.uuids(count: count) { () throws(SystemError) in
        let random = UUID(high: try entropy.next(), low: try entropy.next())
        switch version {
        case .random: return random.stamped(version: 4)
        case .timeOrdered: return sequence.next(now: now, random: random)
        }
      }
    } catch {
      throw .broken("the kernel gives no random bytes: \(error)")
    }
  }

  /// `status`: a row a value.
  private var status: Reply {
    var reply = Reply()
    let uptime = (Clock.monotonicMicroseconds - startedMonotonic) / 1_000_000
    let rows: [(String, Reply.Value)] = [
      ("version", .string(Version.program)),
      ("protocol", .number(Version.lineProtocol)),
      ("pid", .number(Int64(ProcessGuard.processID))),
      ("started", .time(started)),
      ("uptime", .number(Int64(clamping: uptime))),
      ("boot", .string(boot)),
      ("socket", .string(socketPath)),
      ("store", .string(condition.name)),
      ("connections", .number(Int64(connections.count))),
      ("subscribers", .number(0)),
      ("last-event", .number(0)),
      ("apps", .number(Int64(registry.apps.count))),
      ("installations", .number(Int64(registry.apps.values.count { $0.installation != nil }))),
      ("device-origin", .string(registry.device == nil ? "none" : registry.device?.origin?.rawValue ?? "known")),
      ("key", .string("file")),
      ("fleet", .string("none")),
    ]
    for (name, value) in rows {
      reply.row()
      reply.attribute(name, value)
    }
    if let refusal = condition.refusal {
      reply.row()
      reply.attribute("store-reason", .string(refusal.text))
    }
    reply.ok()
    return reply
  }

  private var boot: String {
    guard let (high, low) = try? MachineIdentity.boot() else { return "unknown" }
    return "\(UUID(high: high, low: low))"
  }
}
