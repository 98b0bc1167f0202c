import IdentityCore
import IdentityStore
import IdentityWire

// Answers with a secret: the secret goes from guarded memory into the output, is sent, and is wiped.
extension Server {
  /// Appends an answer to the output.
  ///
  /// - Returns: false if the writer has to be asked for the secret of the answer. Nothing is appended then.
  func append(_ reply: Reply, to connection: Connection) throws(Refusal) -> Bool {
    guard let item = reply.item else {
      var written = 0
      let length = connection.output.count + connections.turn.pieceLength
      if !reply.append(to: &connection.output, from: &written, upTo: length) {
        connection.begin(.reply(reply, written: written))
      }
      return true
    }
    guard let itemReader else { return false }
    let start = connection.output.count
    var outcome = ItemReader.Outcome.changed
    try append(reply, item, to: connection) { (output) throws(Refusal) in
      outcome = itemReader.appendSecret(of: item, to: &output, secretMemory)
      switch outcome {
      case .appended, .changed: return
      case .damaged: throw damage(of: item)
      case .failed(let reason):
        let refusal = Refusal.broken("the secret cannot be read: \(reason)")
        sayFault(of: item, refusal)
        throw refusal
      }
    }
    if outcome == .appended { return true }
    connection.output.removeLast(connection.output.count - start)
    connection.session.finishAnswer()
    return false
  }

  /// Appends the writer's answer to the output, or starts sending the backup that the answer contains.
  func append(_ answer: WriterReport.Answer, to connection: Connection) {
    if let backup = answer.backup {
      return connection.begin(.backup(OutgoingBackup(backup, answer.reply)))
    }
    guard let item = answer.reply.item, let secret = answer.secret else {
      return answer.reply.append(to: &connection.output)
    }
    do throws(Refusal) {
      try append(answer.reply, item, to: connection) { (output) throws(Refusal) in
        guard secretMemory.appendBase64(of: secret, to: &output) else { throw damage(of: item) }
      }
    } catch {
      error.append(to: &connection.output)
    }
  }

  /// Appends an answer with its secret, or nothing after an error.
  private func append(
    _ reply: Reply, _ item: Item, to connection: Connection,
    data: (inout [UInt8]) throws(Refusal) -> Void
  ) throws(Refusal) {
    let start = connection.output.count
    // Reserves all memory before the secret is written, because a reallocation would leave a copy behind. Encoding
    // turns a byte of an item's texts into at most six bytes.
    connection.output.reserveCapacity(start + item.secretLength / 3 * 4 + 6 * item.size + Self.replyRoom)
    do throws(Refusal) {
      try reply.append(to: &connection.output, data: data)
      connection.session.beginSecret()
    } catch {
      connection.output.removeLast(connection.output.count - start)
      throw error
    }
  }

  /// The room for the names and times of an answer, in bytes.
  private static var replyRoom: Int { 8_192 }

  private func damage(of item: Item) -> Refusal {
    sayFault(of: item, .damagedSecret(item))
    return .damagedSecret(item)
  }

  /// Logs a fault of a secret once per edition of the item. Otherwise a client could fill the journal with requests.
  func sayFault(of item: Item, _ refusal: Refusal) {
    if knownDamaged.insert(item.edition).inserted { say(.secretDamaged(refusal.text)) }
  }

  /// Logs whether items are served, after a change.
  func sayItemFault() {
    if let fault = registry.itemFault { say(.itemsLocked(fault)) } else { say(.itemsOpened) }
  }
}
