/// A client's connection without its socket: a state machine that decides what is read, carried out, sent and closed.
///
/// The inputs are functions, such as ``receive(_:)`` and ``finishJob()``. The actions are values, which the server
/// carries out: ``next(in:from:limit:_:)`` names the next request in the input, and
/// ``conclusion(hasUnsentOutput:hasMoreWork:stop:)`` the end of a turn. The machine sees bytes and keeps none.
@usableFromInline package struct Session: Equatable, Sendable {
  /// The phases of a connection.
  @usableFromInline package enum Phase: Equatable, Sendable {
    /// Requests are read and carried out.
    case serving
    /// Nothing more is read. The connection ends once its output is sent.
    case closing
    /// The last answer is sent and the writing side is shut down. Further input is counted and discarded.
    case draining(discarded: UInt32)
    /// The connection is left to the next run of the service. This run does no more work for it.
    case parked(isClosing: Bool)
  }

  /// The states of the input.
  @usableFromInline package enum Reading: Equatable, Sendable {
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
  @usableFromInline package enum ExclusiveAnswer: Equatable, Sendable {
    case secret, backup
    /// The answer to a change that is made in several steps, between which the writer serves others.
    case steps
  }

  /// An answer that is made in pieces, between which other connections are served.
  @usableFromInline package enum Pieces: Equatable, Sendable {
    /// Secrets, whether or not the client reads. Nothing is sent before the last.
    case secrets
    /// The search for the objects of a change, whether or not the client reads.
    case search
    /// A list, whether or not the client reads.
    case rows
    /// A backup, of which each piece is made after the client has read the one before.
    case backup
    /// The answer that makes the start of a unit fail, in pieces like a backup.
    case failure
  }

  /// A fact without which nothing is written.
  @usableFromInline package enum Awaited: Equatable, Sendable {
    /// The turn of an answer that makes the start of a unit fail.
    case failureTurn
    /// The service manager's answer about the peer.
    case lookup
    /// The signature of a proof, or a key for it.
    case signature
    /// The client has read all of a backup.
    case reader
  }

  /// The answers in progress.
  @usableFromInline package enum Answer: Equatable, Sendable {
    case none
    /// The writer has this many requests. If there is an exclusive answer, it is the last of them.
    case writer(jobs: UInt32, last: ExclusiveAnswer?)
    /// The output ends with a secret. Nothing is appended to such output, and it is wiped once it is sent.
    case secret
    case pieces(Pieces)
    case awaiting(Awaited)
  }

  @usableFromInline package internal(set) var phase = Phase.serving
  @usableFromInline package internal(set) var reading = Reading.open
  @usableFromInline package internal(set) var answer = Answer.none
  /// The number of requests that were carried out.
  @usableFromInline package internal(set) var requests: UInt64 = 0
  /// The number of bytes of the input that contain no line feed, so that a slow sender's line is searched once.
  @usableFromInline var searched = 0

  @inlinable package init() {}

  /// Continues a connection that the last run of the service left.
  ///
  /// - Parameters:
  ///   - hasEnded: whether all input was read.
  ///   - isClosing: whether the connection ends once its output is sent.
  ///   - hasOutput: whether output was not sent. It may contain a secret, and nothing tells whether it does.
  @inlinable package init(hasEnded: Bool, isClosing: Bool, hasOutput: Bool) {
    if hasEnded { reading = .ended }
    if isClosing { phase = .closing }
    if hasOutput { answer = .secret }
  }
}

// MARK: - Inputs

extension Session {
  /// Bytes were read; none means the end of the input.
  ///
  /// - Returns: the number of the bytes that count. The others are not from the process that connected.
  @inlinable package mutating func receive(_ count: Int) -> Int {
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
  @inlinable package mutating func hangUp() { if case .open = reading { reading = .final } }

  /// The process that connected has ended.
  ///
  /// - Parameter unread: the number of bytes in the socket that were not read.
  @inlinable package mutating func endProcess(unread: Int) {
    if case .open = reading { reading = .remaining(UInt32(clamping: unread)) }
  }

  /// Requests were carried out.
  @inlinable package mutating func countRequests(_ count: Int = 1) { requests &+= UInt64(truncatingIfNeeded: count) }

  /// A request was sent to the writer.
  @inlinable package mutating func sendJob(last: ExclusiveAnswer?) { answer = .writer(jobs: jobs + 1, last: last) }

  /// The writer has answered a request.
  @inlinable package mutating func finishJob() {
    guard case .writer(let jobs, let last) = answer else { return }
    answer = jobs > 1 ? .writer(jobs: jobs - 1, last: last) : .none
  }

  /// The output ends with a secret now.
  @inlinable package mutating func beginSecret() { answer = .secret }

  /// An answer is to be made in pieces. A client that has hung up gets no list.
  @inlinable package mutating func begin(_ pieces: Pieces) {
    if case (.rows, .final) = (pieces, reading) { return }
    answer = .pieces(pieces)
  }

  /// Nothing is to be written before this fact. A reader is awaited only after the last piece of a backup.
  @inlinable package mutating func wait(for awaited: Awaited) {
    switch (awaited, answer) {
    case (.reader, .pieces(.backup)), (.failureTurn, _), (.lookup, _), (.signature, _): answer = .awaiting(awaited)
    case (.reader, _): break
    }
  }

  /// The answer is complete, the awaited fact has happened, or the client reads no more.
  @inlinable package mutating func finishAnswer() { if !isAtWriter { answer = .none } }

  /// No further request is carried out.
  @inlinable package mutating func close() { if case .serving = phase { phase = .closing } }

  /// The writing side was shut down after the last answer.
  @inlinable package mutating func beginDraining() { phase = .draining(discarded: 0) }

  /// Input was discarded after the last answer.
  ///
  /// - Returns: the number of bytes discarded so far.
  @inlinable package mutating func discard(_ count: Int) -> Int {
    guard case .draining(let before) = phase else { return 0 }
    let discarded = before + UInt32(clamping: count)
    phase = .draining(discarded: discarded)
    return Int(discarded)
  }

  /// The connection is left to the next run of the service.
  @inlinable package mutating func park() {
    if case .closing = phase { phase = .parked(isClosing: true) } else { phase = .parked(isClosing: false) }
  }
}

// MARK: - Questions

extension Session {
  /// The number of requests at the writer.
  @inlinable package var jobs: UInt32 { if case .writer(let jobs, _) = answer { jobs } else { 0 } }

  /// Whether the writer has requests of the client.
  @inlinable package var isAtWriter: Bool { if case .writer = answer { true } else { false } }

  /// Whether an answer is made in pieces.
  @inlinable package var hasLongAnswer: Bool { if case .pieces = answer { true } else { false } }

  /// Whether pieces of an answer are made whether or not the client reads.
  @inlinable package var isWrittenAhead: Bool {
    if case .pieces(let pieces) = answer { pieces.isWrittenAhead } else { false }
  }

  /// Whether the answer that makes the start of a unit fail is under way, or waits for its turn.
  @inlinable package var isFailing: Bool {
    switch answer {
    case .pieces(.failure), .awaiting(.failureTurn): true
    case .none, .writer, .secret, .pieces, .awaiting: false
    }
  }

  /// Whether the output ends with a secret.
  @inlinable package var hasSecret: Bool { if case .secret = answer { true } else { false } }

  /// Whether output must not be sent yet, because the secrets in it are not complete.
  @inlinable package var holdsOutput: Bool { if case .pieces(.secrets) = answer { true } else { false } }

  /// Whether no answer is in progress.
  @inlinable package var hasAnswered: Bool { if case .none = answer { true } else { false } }

  /// Whether a backup is written to its end, and the client has not read all of it.
  @inlinable package var awaitsReader: Bool { if case .awaiting(.reader) = answer { true } else { false } }

  /// Whether a proof is signed, or a key for it is made.
  @inlinable package var awaitsSignature: Bool { if case .awaiting(.signature) = answer { true } else { false } }

  /// Whether no answer is in progress, the client may send more, and the connection is to go on.
  @inlinable package var isAtRest: Bool {
    if case .serving = phase, case .open = reading, case .none = answer { true } else { false }
  }

  /// Whether the service does no more work for the connection in this run.
  @inlinable package var isParked: Bool { if case .parked = phase { true } else { false } }

  /// Whether only input is discarded.
  @inlinable package var isDraining: Bool { if case .draining = phase { true } else { false } }

  /// Whether the connection ends once its output is sent.
  @inlinable package var isClosing: Bool {
    switch phase {
    case .closing, .parked(isClosing: true): true
    case .serving, .draining, .parked: false
    }
  }

  /// Whether no further input is expected.
  @inlinable package var hasEnded: Bool { if case .ended = reading { true } else { false } }

  /// Whether another request may be carried out.
  ///
  /// - Parameter most: the maximum number of requests at the writer.
  @inlinable package func takesRequest(most: Int) -> Bool {
    guard case .serving = phase else { return false }
    return switch answer {
    case .none: true
    case .writer(let jobs, last: nil): jobs < most
    case .writer, .secret, .pieces, .awaiting: false
    }
  }

  /// Whether events may be sent. An event never follows a secret in the output, and never interrupts a long answer.
  @inlinable package var takesEvents: Bool {
    guard case .serving = phase else { return false }
    return switch answer {
    case .none, .writer: true
    case .secret, .pieces, .awaiting: false
    }
  }

  /// Whether the next piece of an answer should be appended to the output.
  @inlinable package func wantsPiece(hasOutput: Bool) -> Bool {
    guard case .pieces(let pieces) = answer else { return false }
    return pieces.isWrittenAhead || !hasOutput
  }
}

extension Session.Reading {
  /// Whether the process that connected has ended.
  @inlinable package var isOfEndedProcess: Bool { if case .remaining = self { true } else { false } }

  /// Whether the client can send nothing more, so that a close loses no answer.
  @inlinable package var isOver: Bool {
    switch self {
    case .ended, .final: true
    case .open, .remaining: false
    }
  }

  /// Whether input may be read.
  @inlinable package var mayGoOn: Bool {
    switch self {
    case .ended, .remaining(0): false
    case .open, .final, .remaining: true
    }
  }
}

extension Session.Pieces {
  /// Whether pieces are made whether or not the client reads.
  @inlinable var isWrittenAhead: Bool {
    switch self {
    case .secrets, .search, .rows: true
    case .backup, .failure: false
    }
  }
}
