import IdentityCore
import IdentityWire
import LinuxSystem

/// An answer that is written in pieces, so that other connections are served in between.
enum LongAnswer {
  case backup(OutgoingBackup)
  /// Rows of new UUIDs.
  case uuids(left: Int, of: Int, UUIDVersion)
  /// A computed reply, and the number of its rows that are written.
  case reply(Reply, written: Int)

  /// Whether the next piece is made only after the client has read the last one.
  ///
  /// Other long answers are written whether or not the client reads. So a principal has few long answers in progress
  /// (``Bound/longAnswersAtOnce``) instead of one for each connection. Their remainder is plain output, which the next
  /// run of the daemon can take over.
  var waitsForReader: Bool {
    switch self {
    case .backup: true
    case .uuids, .reply: false
    }
  }
}

extension Server {
  /// Starts a long answer, unless the client is gone.
  func begin(_ answer: LongAnswer, to connection: Connection) {
    if !connection.isHungUp { connection.outgoing = answer }
  }

  /// Appends the next piece of a long answer to the output.
  func appendPiece(to connection: Connection) {
    let length = connection.output.count + connections.turn.pieceLength
    switch connection.outgoing {
    case .backup(var backup):
      let isWhole = backup.append(to: &connection.output, upTo: length)
      connection.outgoing = isWhole ? nil : .backup(backup)
      if isWhole { connection.isBackedUp = false }
    case .uuids(let left, let count, let version):
      connection.outgoing = appendUUIDs(left: left, of: count, version, to: &connection.output, upTo: length)
    case .reply(let reply, var written):
      let isWhole = reply.append(to: &connection.output, from: &written, upTo: length)
      connection.outgoing = isWhole ? nil : .reply(reply, written: written)
    case nil: break
    }
  }

  private func appendUUIDs(
    left: Int, of count: Int, _ version: UUIDVersion, to output: inout [UInt8], upTo length: Int
  ) -> LongAnswer? {
    var left = left
    do {
      while left > 0, output.count < length {
        let next = try nextUUID(version)
        output += "* ".utf8
        next.append(to: &output)
        output.append(UInt8(ascii: "\n"))
        left -= 1
      }
      guard left == 0 else { return .uuids(left: left, of: count, version) }
      Reply.done(.number(Int64(count))).append(to: &output)
    } catch {
      error.append(to: &output)
    }
    return nil
  }

  /// Returns a new UUID.
  func nextUUID(_ version: UUIDVersion) throws(Refusal) -> UUID {
    do {
      let random = UUID(high: try entropy.next(), low: try entropy.next())
      switch version {
      case .random: return random.stamped(version: 4)
      case .timeOrdered:
        let now = Timestamp(milliseconds: Clock.realtimeMilliseconds)
        let next = sequence.next(now: now, random: random)
        memory?.set(lastUUID: next)
        return next
      }
    } catch {
      throw .broken("the kernel gives no random bytes: \(error)")
    }
  }
}
