import Attestation
import IdentityCore
import IdentityStore
import IdentityWire
import LinuxSystem
import Sessions

/// Encodes answers into the output of connections: long answers in pieces, and secrets from guarded memory.
final class AnswerEncoder {
  private let state: CommittedState
  private let connections: ConnectionTable
  private let secretMemory: SecretMemory
  private let uuids: FreshUUIDs
  private let handover: Handover
  private let measurements: Measurements
  private let failures: CredentialFailures

  init(
    _ state: CommittedState, _ connections: ConnectionTable, _ uuids: FreshUUIDs, _ handover: Handover,
    _ measurements: Measurements, _ failures: CredentialFailures, secretMemory: SecretMemory
  ) {
    self.state = state
    self.connections = connections
    self.secretMemory = secretMemory
    self.uuids = uuids
    self.handover = handover
    self.measurements = measurements
    self.failures = failures
  }

  /// Appends an answer from the registry, or begins to append it in pieces.
  ///
  /// - Parameter verb: the index of the verb in ``VerbTable/verbs``.
  /// - Returns: false if the writer has to be asked for the secret of the answer. Nothing is appended then.
  func append(_ reply: Reply, _ verb: Int, to connection: Connection) throws(Refusal) -> Bool {
    guard reply.secrets.isEmpty else { return try appendStored(reply, verb, to: connection) }
    guard reply.hasRows else {
      appendPlain(reply, to: connection)
      return true
    }
    var rest = reply
    let length = connection.output.count + connections.turn.pieceLength
    if try !appendPiece(of: &rest, to: &connection.output, upTo: length) { connection.begin(.reply(rest, verb: verb)) }
    return true
  }

  /// Appends an answer without secrets and rows. To the request for a credential, its first word alone is the answer.
  private func appendPlain(_ reply: Reply, to connection: Connection) {
    if connection.credential == nil {
      reply.append(to: &connection.output)
    } else {
      reply.appendFirstWord(to: &connection.output)
    }
  }

  /// Appends rows until the output has a length or the time of a turn is over.
  ///
  /// - Returns: whether the answer is complete.
  private func appendPiece(of reply: inout Reply, to output: inout [UInt8], upTo length: Int) throws(Refusal) -> Bool {
    let end = Clock.monotonicMicroseconds + connections.turn.microseconds
    repeat {
      var effort = Bound.elementsBetweenLooks
      if try reply.appendPiece(to: &output, upTo: length, effort: &effort) { return true }
    } while output.count < length && Clock.monotonicMicroseconds < end
    return false
  }

  /// Appends the writer's answer, or starts sending the backup that the answer contains.
  func append(_ answer: WriterReport.Answer, to connection: Connection) {
    if let backup = answer.backup { return connection.begin(.backup(backup)) }
    guard let secret = answer.secrets.first else { return appendPlain(answer.reply, to: connection) }
    // The answer was counted when it arrived.
    guard !answer.reply.hasRows else { return gather(answer.reply, answer.secrets, nil, in: connection) }
    do throws(Refusal) {
      try append(answer.reply, to: connection) { (item, output, form) throws(Refusal) in
        guard secretMemory.append(secret, as: form, to: &output) else { throw damage(of: item, for: connection) }
      }
    } catch {
      refuse(error, to: connection)
    }
  }

  /// Appends a refusal, or makes the start of a unit fail if the connection requests a credential.
  func refuse(_ refusal: Refusal, to connection: Connection) {
    guard let credential = connection.credential else { return refusal.append(to: &connection.output) }
    failures.begin(for: connection, credential, refusal)
  }

  // MARK: Secrets

  /// Appends an answer with the secret as the store has it, or begins to append one with several secrets.
  ///
  /// - Returns: false if the store has another edition of an item. Nothing is appended then.
  private func appendStored(_ reply: Reply, _ verb: Int, to connection: Connection) throws(Refusal) -> Bool {
    guard let reader = state.itemReader else { return false }
    guard !reply.hasRows else {
      var secrets: [SealedSecret] = []
      for item in reply.secrets {
        let outcome = reader.append(secretOf: item, to: &secrets, secretMemory)
        guard try isAppended(outcome, of: item, for: connection) else { return false }
      }
      gather(reply, secrets, verb, in: connection)
      return true
    }
    let start = connection.output.count
    var isAppended = false
    try append(reply, to: connection) { (item, output, form) throws(Refusal) in
      let outcome = reader.append(secretOf: item, as: form, to: &output, secretMemory)
      isAppended = try self.isAppended(outcome, of: item, for: connection)
    }
    if isAppended { return true }
    connection.output.removeLast(connection.output.count - start)
    connection.session.finishAnswer()
    return false
  }

  /// Returns whether a secret was read; false if the store has another edition of its item.
  private func isAppended(_ outcome: ItemReader.Outcome, of item: Item, for connection: Connection) throws(Refusal)
    -> Bool
  {
    switch outcome {
    case .appended: return true
    case .changed: return false
    case .damaged: throw damage(of: item, for: connection)
    case .failed(let reason):
      let refusal = Refusal.broken("the secret cannot be read: \(reason)")
      state.logFault(of: item, refusal, by: connection.held.originator)
      throw refusal
    }
  }

  /// Begins to append rows with secrets, which are sent together once the last is in the output.
  ///
  /// - Parameter verb: the index of the verb, for which the answer is counted at its end; nil if it was counted.
  private func gather(_ reply: Reply, _ secrets: [SealedSecret], _ verb: Int?, in connection: Connection) {
    let start = connection.output.count
    connection.output.reserveCapacity(start + reply.longestLength)
    connection.begin(.secrets(reply, secrets[...], start: start, verb: verb))
  }

  /// Appends rows with secrets until the time of a turn is over.
  private func appendRows(
    of reply: Reply, _ secrets: ArraySlice<SealedSecret>, start: Int, _ verb: Int?, to connection: Connection
  ) {
    var (reply, secrets) = (reply, secrets)
    let end = Clock.monotonicMicroseconds + connections.turn.microseconds
    do throws(Refusal) {
      while try reply.appendRow(
        to: &connection.output,
        data: { (item, output) throws(Refusal) in
          guard let secret = secrets.popFirst(), secretMemory.append(secret, as: .base64, to: &output) else {
            throw damage(of: item, for: connection)
          }
        })
      {
        guard Clock.monotonicMicroseconds < end else {
          return connection.goOn(with: .secrets(reply, secrets, start: start, verb: verb))
        }
      }
      connection.goOn(with: nil)
      connection.session.beginSecret()
      if let verb { measurements.countAnswer(to: verb, nil) }
    } catch {
      // The output keeps its capacity, so the secrets are wiped together with the rest.
      connection.output.replaceSubrange(start..., with: repeatElement(0, count: connection.output.count - start))
      connection.output.removeLast(connection.output.count - start)
      connection.goOn(with: nil)
      error.append(to: &connection.output)
      if let verb { measurements.countAnswer(to: verb, error.code) }
    }
  }

  /// Appends an answer with one secret, or nothing after an error. To the request for a credential, the secret alone is
  /// the answer.
  ///
  /// - Parameter data: appends the secret of an item in a form.
  private func append(
    _ reply: Reply, to connection: Connection, data: (Item, inout [UInt8], SecretForm) throws(Refusal) -> Void
  ) throws(Refusal) {
    let start = connection.output.count
    let credential = connection.credential == nil ? nil : reply.secrets.first
    // Reserves all memory before a secret is written, because a reallocation would leave a copy behind.
    connection.output.reserveCapacity(start + reply.longestLength)
    do throws(Refusal) {
      if let credential {
        try data(credential, &connection.output, .bytes)
      } else {
        try reply.append(to: &connection.output) { (item, output) throws(Refusal) in try data(item, &output, .base64) }
      }
      connection.session.beginSecret()
    } catch {
      connection.output.removeLast(connection.output.count - start)
      throw error
    }
  }

  private func damage(of item: Item, for connection: Connection) -> Refusal {
    state.logFault(of: item, .damagedSecret(item), by: connection.held.originator)
    return .damagedSecret(item)
  }

  // MARK: Long answers

  /// Appends the next piece of a long answer.
  func appendPiece(to connection: Connection) {
    let length = connection.output.count + connections.turn.pieceLength
    switch connection.outgoing {
    case .backup(var backup):
      let isWhole = backup.append(to: &connection.output, upTo: length)
      if isWhole { connection.awaitReader(of: backup) } else { connection.goOn(with: .backup(backup)) }
    case .uuids(let left, let count, let version):
      connection.goOn(with: appendUUIDs(left: left, of: count, version, to: &connection.output, upTo: length))
    case .reply(var reply, let verb):
      do throws(Refusal) {
        let isWhole = try appendPiece(of: &reply, to: &connection.output, upTo: length)
        connection.goOn(with: isWhole ? nil : .reply(reply, verb: verb))
        if isWhole { measurements.countAnswer(to: verb, nil) }
      } catch {
        connection.goOn(with: nil)
        error.append(to: &connection.output)
        measurements.countAnswer(to: verb, error.code)
      }
    case .secrets(let reply, let secrets, let start, let verb):
      appendRows(of: reply, secrets, start: start, verb, to: connection)
    case .zeros(let left): connection.goOn(with: CredentialFailures.appendPiece(left: left, to: &connection.output))
    case .search, nil: break
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

  /// Returns a new UUID. A UUID of version 7 is saved for the handover, so that the next run continues behind it.
  func nextUUID(_ version: UUIDVersion) throws(Refusal) -> UUID {
    let next = try uuids.next(version)
    if version == .timeOrdered { handover.keep(lastUUID: next) }
    return next
  }
}

/// An answer that is written in pieces, so that other connections are served in between.
enum LongAnswer {
  case backup(OutgoingBackup)
  /// Rows of new UUIDs.
  case uuids(left: Int, of: Int, UUIDVersion)
  /// The rest of a reply to a verb, which is given by its index in ``VerbTable/verbs``.
  case reply(Reply, verb: Int)
  /// The rest of an answer whose rows have secrets, which are encrypted with the transit key. The answer begins at an
  /// index of the output.
  case secrets(Reply, ArraySlice<SealedSecret>, start: Int, verb: Int?)
  /// The answer that makes the start of a unit fail, of which so many bytes are left.
  case zeros(left: Int)
  /// The search for the objects of a change, which a request with this verb asks for.
  case search(ObjectSearch, verb: Int)
}
