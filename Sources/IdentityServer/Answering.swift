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
      switch try table.command(parser, in: line, by: connection.peer) {
      case .local(let command):
        // Answers keep the order of the questions.
        guard connection.inFlight == 0 else { return false }
        try answer(command, connection)
      case .registry(let command):
        if connection.inFlight == 0, isSettled, let reply = try registry.answer(command, for: connection.peer) {
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
    case .whoami:
      let app = connection.peer.app
      Reply.whoami(connection.peer, vendor: registry.vendor(of: app), groups: registry.accessGroups(of: app))
        .append(to: &connection.output)
    case .check(let text): Reply.check(text).append(to: &connection.output)
    case .status: status.append(to: &connection.output)
    case .derived(let identifier): try derive(identifier, for: connection.peer).append(to: &connection.output)
    case .subscribe(let topics, let since, let snapshot):
      try subscribe(topics, since: since, snapshot: snapshot, connection)
    case .unsubscribe(let topics): unsubscribe(topics, connection)
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
        case .timeOrdered:
          let next = sequence.next(now: now, random: random)
          memory?.set(lastUUID: next)
          return next
        }
      }
    } catch {
      throw .broken("the kernel gives no random bytes: \(error)")
    }
  }
}
