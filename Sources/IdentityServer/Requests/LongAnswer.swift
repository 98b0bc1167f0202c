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
}

extension Server {
  /// Appends the next piece of a long answer to the output.
  func appendPiece(to connection: Connection) {
    let length = connection.output.count + connections.turn.pieceLength
    switch connection.outgoing {
    case .backup(var backup):
      let isWhole = backup.append(to: &connection.output, upTo: length)
      connection.goOn(with: isWhole ? nil : .backup(backup))
    case .uuids(let left, let count, let version):
      connection.goOn(with: appendUUIDs(left: left, of: count, version, to: &connection.output, upTo: length))
    case .reply(let reply, var written):
      let isWhole = reply.append(to: &connection.output, from: &written, upTo: length)
      connection.goOn(with: isWhole ? nil : .reply(reply, written: written))
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

  /// Returns a new UUID. The next run of the daemon continues behind one of version 7.
  func nextUUID(_ version: UUIDVersion) throws(Refusal) -> UUID {
    let next = try freshUUIDs.next(version)
    if version == .timeOrdered { memory?.set(lastUUID: next) }
    return next
  }
}
