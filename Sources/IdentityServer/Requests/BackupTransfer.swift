import IdentityCore
import IdentityStore
import IdentityWire

/// A backup that is sent to a client as fast as the client reads.
struct OutgoingBackup: Sendable {
  /// The pieces that are not sent, each the content of a row.
  private var pieces: ArraySlice<[UInt8]>
  private let reply: Reply
  /// The time when the backup was made.
  let made: Timestamp

  init(_ pieces: [[UInt8]], _ reply: Reply, made: Timestamp) {
    self.pieces = pieces[...]
    self.reply = reply
    self.made = made
  }

  /// Appends the next rows, and at the end the final line.
  ///
  /// - Parameter length: the wanted length of the output, in bytes. The last row and the final line may exceed it.
  /// - Returns: whether the backup is complete.
  mutating func append(to output: inout [UInt8], upTo length: Int) -> Bool {
    while output.count < length, let piece = pieces.popFirst() {
      output += "* data=".utf8
      Base64.append(piece[...], to: &output)
      output.append(UInt8(ascii: "\n"))
    }
    guard pieces.isEmpty else { return false }
    reply.append(to: &output)
    return true
  }
}

/// The upload of a backup. There is only one at a time, because an upload takes memory.
struct UploadSlot {
  private var upload: (token: ConnectionToken, backup: BackupUpload)? { didSet { isTaken = upload != nil } }
  /// Whether an upload is in progress.
  private(set) var isTaken = false

  /// `restore begin`: starts an upload, or starts that of the same connection anew.
  mutating func begin(_ key: SealedSecret, by token: ConnectionToken) throws(Refusal) {
    guard upload == nil || upload?.token == token else {
      throw .conflict("another connection is uploading a backup; try again later")
    }
    upload = (token, try BackupUpload(key: key))
  }

  /// `restore data`: adds a piece, and returns the number of bytes so far.
  mutating func add(_ text: Text, by token: ConnectionToken) throws(Refusal) -> Int {
    guard upload?.token == token, let count = try upload?.backup.add(text) else { throw Self.noUpload }
    return count
  }

  /// `restore end`: removes and returns the backup.
  mutating func take(by token: ConnectionToken) throws(Refusal) -> BackupUpload {
    guard upload?.token == token, let taken = upload.take() else { throw Self.noUpload }
    return taken.backup
  }

  /// Drops the upload of a connection that has closed.
  mutating func drop(of token: ConnectionToken) { if upload?.token == token { upload = nil } }

  private static var noUpload: Refusal {
    .conflict("no restore was begun on this connection; send 'restore begin' first")
  }
}
