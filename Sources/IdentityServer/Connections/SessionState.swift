/// The stages of the daemon's stop, which decide how a connection ends.
enum StopStage: Sendable {
  case running
  /// No request is read any more. Each connection closes after its last answer.
  case closingConnections
  /// No request is read any more. Each connection is left to the next run of the daemon after its last answer.
  case handingOver
  /// Like ``handingOver``, but connections are left to the next run even if the client has not read its answers.
  case handoverDue
  /// All connections are closed or parked, and the writer was told to close the store.
  case closingStore
}

/// The state of a client's connection, without I/O.
///
/// The inputs are functions, such as ``receive(_:)`` and ``finishJob()``. ``conclusion(hasUnsentOutput:hasMoreWork:stop:)``
/// returns the action that ends a turn, which the server carries out.
struct SessionState: Equatable, Sendable {
  /// The phases of a connection.
  enum Phase: Equatable, Sendable {
    /// Requests are read and carried out.
    case serving
    /// Nothing more is read. The connection ends once its output is sent.
    case closing
    /// The last answer is sent and the writing side is shut down. Further input is counted and discarded.
    case draining(discarded: UInt32)
    /// The connection is left to the next run of the daemon. This run does no more work for it.
    case parked(isClosing: Bool)
  }

  /// The states of the input.
  enum Reading: Equatable, Sendable {
    case open
    /// The client has hung up, so nothing more arrives. Input sent before is still read.
    case final
    /// The process that connected has ended. It had sent this many bytes that are unread. Later input is from another
    /// process, and is not read.
    case remaining(UInt32)
    /// All input was read.
    case ended
  }

  /// An answer after which no other request is carried out until the client has received it.
  enum ExclusiveAnswer: Equatable, Sendable {
    case secret, backup
    /// The answer to a change that is made in several steps, between which the writer serves others.
    case steps
  }

  /// The answers in progress.
  enum Answer: Equatable, Sendable {
    case none
    /// The writer has this many requests. If there is an exclusive answer, it is the last of them.
    case writer(jobs: UInt32, last: ExclusiveAnswer?)
    /// The output ends with a secret. Nothing is appended to such output, and it is wiped once it is sent.
    case secret
    /// Secrets are added to the output in pieces, whether or not the client reads. Nothing is sent before the last.
    case gathering
    /// The objects of a change are looked for in pieces, whether or not the client reads.
    case search
    /// A list is written in pieces, whether or not the client reads.
    case rows
    /// A backup is written in pieces, each after the client has read the one before.
    case backup
    /// A backup is written to its end, and the client has not read all of it.
    case unread
    /// The answer that makes the start of a unit fail is written in pieces, each after the client has read the one
    /// before. While it waits for its turn, nothing is written.
    case failure(waits: Bool)
    /// The service manager is asked about the peer. Nothing is written until it has answered.
    case lookup
    /// A proof is signed, or a key for it is made. Nothing is written until that is done.
    case proof
  }

  private(set) var phase = Phase.serving
  private(set) var reading = Reading.open
  private(set) var answer = Answer.none

  init() {}

  /// Creates the state of a connection that the last run of the daemon left.
  ///
  /// - Parameters:
  ///   - hasEnded: whether all input was read.
  ///   - isClosing: whether the connection ends once its output is sent.
  ///   - hasOutput: whether output was not sent. It may contain a secret, and nothing tells whether it does.
  init(hasEnded: Bool, isClosing: Bool, hasOutput: Bool) {
    if hasEnded { reading = .ended }
    if isClosing { phase = .closing }
    if hasOutput { answer = .secret }
  }
}

// MARK: - Inputs

extension SessionState {
  /// Bytes were read; none means the end of the input.
  ///
  /// - Returns: the number of the bytes that count. The others are not from the process that connected.
  mutating func receive(_ count: Int) -> Int {
    switch reading {
    case _ where count == 0: reading = .ended
    case .remaining(let left):
      let accepted = min(count, Int(left))
      reading = .remaining(left - UInt32(accepted))
      return accepted
    case .open, .final, .ended: break
    }
    return count
  }

  /// The connection failed, or the client has ended both directions.
  mutating func hangUp() { if reading == .open { reading = .final } }

  /// The process that connected has ended.
  ///
  /// - Parameter unread: the number of bytes in the socket that were not read.
  mutating func endProcess(unread: Int) {
    if reading == .open { reading = .remaining(UInt32(clamping: unread)) }
  }

  /// A request was sent to the writer.
  mutating func sendJob(last: ExclusiveAnswer?) { answer = .writer(jobs: jobs + 1, last: last) }

  /// The writer has answered a request.
  mutating func finishJob() {
    guard case .writer(let jobs, let last) = answer else { return }
    answer = jobs > 1 ? .writer(jobs: jobs - 1, last: last) : .none
  }

  /// The output ends with a secret now.
  mutating func beginSecret() { answer = .secret }

  /// Secrets are to be added to the output in pieces.
  mutating func beginGathering() { answer = .gathering }

  /// The objects of a change are to be looked for in pieces, also for a client that has hung up.
  mutating func beginSearch() { answer = .search }

  /// A list is to be written in pieces. A client that has hung up gets none.
  mutating func beginRows() { if reading != .final { answer = .rows } }

  /// A backup is to be written in pieces.
  mutating func beginBackup() { answer = .backup }

  /// The answer that makes the start of a unit fail is to be written, or to wait for its turn.
  mutating func beginFailure(waits: Bool) { answer = .failure(waits: waits) }

  /// The service manager was asked about the peer.
  mutating func beginLookup() { answer = .lookup }

  /// A proof was passed to the signer.
  mutating func beginProof() { answer = .proof }

  /// All of a backup is in the output. Nothing more is carried out until the client has read it.
  mutating func awaitReader() { if case .backup = answer { answer = .unread } }

  /// The secret, list or backup is complete, or the client reads no more.
  mutating func finishAnswer() { if !isAtWriter { answer = .none } }

  /// No further request is carried out.
  mutating func close() { if phase == .serving { phase = .closing } }

  /// The writing side was shut down after the last answer.
  mutating func beginDraining() { phase = .draining(discarded: 0) }

  /// Input was discarded after the last answer.
  ///
  /// - Returns: the number of bytes discarded so far.
  mutating func discard(_ count: Int) -> Int {
    guard case .draining(let before) = phase else { return 0 }
    let discarded = before + UInt32(clamping: count)
    phase = .draining(discarded: discarded)
    return Int(discarded)
  }

  /// The connection is left to the next run of the daemon.
  mutating func park() { phase = .parked(isClosing: phase == .closing) }
}

// MARK: - Questions

extension SessionState {
  /// The number of requests at the writer.
  var jobs: UInt32 { if case .writer(let jobs, _) = answer { jobs } else { 0 } }

  /// Whether the writer has requests of the client.
  var isAtWriter: Bool { if case .writer = answer { true } else { false } }

  /// Whether an answer is written in pieces.
  var hasLongAnswer: Bool {
    switch answer {
    case .gathering, .search, .rows, .backup, .failure(waits: false): true
    case .none, .writer, .secret, .unread, .failure(waits: true), .lookup, .proof: false
    }
  }

  /// Whether pieces of a long answer are written whether or not the client reads.
  var isWrittenAhead: Bool {
    switch answer {
    case .gathering, .search, .rows: true
    case .none, .writer, .secret, .backup, .unread, .failure, .lookup, .proof: false
    }
  }

  /// Whether the answer that makes the start of a unit fail is under way, or waits for its turn.
  var isFailing: Bool { if case .failure = answer { true } else { false } }

  /// Whether the service manager is asked about the peer.
  var isLookup: Bool { if case .lookup = answer { true } else { false } }

  /// Whether the signer has a proof of the client.
  var isProof: Bool { if case .proof = answer { true } else { false } }

  /// Whether the objects of a change are looked for.
  var isSearching: Bool { if case .search = answer { true } else { false } }

  /// Whether the output ends with a secret.
  var hasSecret: Bool { if case .secret = answer { true } else { false } }

  /// Whether secrets are added to the output, which must not be sent yet.
  var isGathering: Bool { if case .gathering = answer { true } else { false } }

  /// Whether no answer is in progress.
  var hasAnswered: Bool { if case .none = answer { true } else { false } }

  /// Whether a backup is written to its end, and the client has not read all of it.
  var awaitsReader: Bool { if case .unread = answer { true } else { false } }

  /// Whether the daemon holds a backup for the client, or makes one.
  var hasBackup: Bool {
    switch answer {
    case .backup, .writer(_, last: .backup?): true
    default: false
    }
  }

  /// Whether no answer is in progress, the client may send more, and the connection is to go on.
  var isAtRest: Bool {
    if case .serving = phase, case .open = reading, case .none = answer { true } else { false }
  }

  /// Whether the daemon does no more work for the connection in this run.
  var isParked: Bool { if case .parked = phase { true } else { false } }

  /// Whether only input is discarded.
  var isDraining: Bool { if case .draining = phase { true } else { false } }

  /// Whether the connection ends once its output is sent.
  var isClosing: Bool {
    switch phase {
    case .closing, .parked(isClosing: true): true
    case .serving, .draining, .parked: false
    }
  }

  /// Whether no further input is expected.
  var hasEnded: Bool { if case .ended = reading { true } else { false } }

  /// Whether the process that connected has ended.
  var isOfEndedProcess: Bool { if case .remaining = reading { true } else { false } }

  /// Whether the client can send nothing more, so that a close loses no answer.
  var isOver: Bool {
    switch reading {
    case .ended, .final: true
    case .open, .remaining: false
    }
  }

  /// Whether input may be read.
  var mayRead: Bool {
    switch reading {
    case .ended, .remaining(0): false
    case .open, .final, .remaining: true
    }
  }

  /// Whether another request may be carried out.
  ///
  /// - Parameter most: the maximum number of requests at the writer.
  func takesRequest(most: Int) -> Bool {
    guard case .serving = phase else { return false }
    return switch answer {
    case .none: true
    case .writer(let jobs, last: nil): jobs < most
    case .writer, .secret, .gathering, .search, .rows, .backup, .unread, .failure, .lookup, .proof: false
    }
  }

  /// Whether events may be sent. An event never follows a secret in the output, and never interrupts a long answer.
  var takesEvents: Bool {
    guard case .serving = phase else { return false }
    return switch answer {
    case .none, .writer: true
    case .secret, .gathering, .search, .rows, .backup, .unread, .failure, .lookup, .proof: false
    }
  }

  /// Whether the next piece of a long answer should be appended to the output.
  func wantsPiece(hasOutput: Bool) -> Bool {
    switch answer {
    case .gathering, .search, .rows: true
    case .backup, .failure(waits: false): !hasOutput
    case .none, .writer, .secret, .unread, .failure(waits: true), .lookup, .proof: false
    }
  }

  /// The actions that can end a turn of a connection.
  enum Conclusion: Equatable, Sendable {
    /// Says that the process has ended, in case another process still has the connection. The connection then closes.
    case refuseOrphan
    /// Ends the connection after its last answer.
    case end
    /// Closes the connection at once.
    case close
    /// Leaves the connection to the next run of the daemon.
    case park
    /// Waits for the client, the writer or an event.
    case rest
  }

  /// Returns the action that ends a turn.
  ///
  /// - Parameters:
  ///   - hasUnsentOutput: whether the socket has not taken all output.
  ///   - hasMoreWork: whether the connection waits for another turn.
  ///   - stop: the stage of the daemon's stop.
  func conclusion(hasUnsentOutput: Bool, hasMoreWork: Bool, stop: StopStage) -> Conclusion {
    // The client can still read the end of a backup after a handover.
    let isIdle = (hasAnswered || awaitsReader && stop == .handoverDue) && !hasUnsentOutput
    if isIdle, isClosing || !hasMoreWork {
      if case .serving = phase, case .remaining(0) = reading { return .refuseOrphan }
      if isClosing || hasEnded || stop == .closingConnections { return .end }
    }
    guard stop == .handingOver || stop == .handoverDue else { return .rest }
    // A handover record does not contain the position in a long answer, nor a request. An answer that makes a start fail
    // begins again, and so does that to a service manager, which has ended its input.
    if stop == .handoverDue, hasLongAnswer && !isFailing || isProof && !hasEnded { return .close }
    return isIdle || (stop == .handoverDue && !isAtWriter) ? .park : .rest
  }
}
