import IdentityCore
import IdentityStore
import IdentityWire

/// A backup that is sent to a client as fast as the client reads.
struct OutgoingBackup {
  private let bytes: [UInt8]
  private let reply: Reply
  private var sent = 0

  init(_ bytes: [UInt8], _ reply: Reply) {
    self.bytes = bytes
    self.reply = reply
  }

  /// Appends the next rows, and at the end the final line.
  ///
  /// - Parameter length: the wanted length of the output, in bytes. The last row and the final line may exceed it.
  /// - Returns: whether the backup is complete.
  mutating func append(to output: inout [UInt8], upTo length: Int) -> Bool {
    while sent < bytes.count, output.count < length {
      let piece = bytes[sent..<min(sent + Bound.backupPiece, bytes.count)]
      output += "* data=".utf8
      Base64.append(piece, to: &output)
      output.append(UInt8(ascii: "\n"))
      sent = piece.endIndex
    }
    guard sent == bytes.count else { return false }
    reply.append(to: &output)
    return true
  }
}

// The upload of a backup, by one connection at a time.
extension Server {
  func beginUpload(_ key: SealedSecret, of connection: Connection) throws(Refusal) {
    guard upload == nil || upload?.token == connection.token else {
      throw .conflict("another connection is uploading a backup; try again later")
    }
    upload = (connection.token, try BackupUpload(key: key))
  }

  func addToUpload(_ text: Text, of connection: Connection) throws(Refusal) -> Reply {
    guard upload?.token == connection.token, let count = try upload?.backup.add(text) else { throw Self.noUpload }
    return .done(.number(Int64(count)))
  }

  /// Removes and returns the uploaded backup.
  func takeUpload(of connection: Connection) throws(Refusal) -> BackupUpload {
    guard upload?.token == connection.token, let taken = upload.take() else { throw Self.noUpload }
    return taken.backup
  }

  private static var noUpload: Refusal {
    .conflict("no restore was begun on this connection; send 'restore begin' first")
  }
}
