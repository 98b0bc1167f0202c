import Testing

@testable import IdentityServer

/// Transcripts of connections: the inputs, and the action that ends each turn.
struct SessionStateTests {
  /// One input of a connection, or a fact about the daemon.
  enum Input {
    case receive(Int)
    case hangUp
    case endProcess(unread: Int)
    case sendJob(SessionState.ExclusiveAnswer?)
    case finishJob
    case beginSecret, beginGathering, beginRows, beginBackup, beginProof, awaitReader, finishAnswer
    case close, drain, park
    /// Output is pending, and then sent.
    case output, sent
    /// The connection waits for another turn, and then had it.
    case queue, serve
    case stop(StopStage)
  }

  /// A connection with the facts that its state does not hold.
  struct Transcript {
    var state = SessionState()
    var hasUnsentOutput = false
    var hasMoreWork = false
    var stop = StopStage.running

    var conclusion: SessionState.Conclusion {
      state.conclusion(hasUnsentOutput: hasUnsentOutput, hasMoreWork: hasMoreWork, stop: stop)
    }

    mutating func take(_ input: Input) {
      switch input {
      case .receive(let count): _ = state.receive(count)
      case .hangUp: state.hangUp()
      case .endProcess(let unread): state.endProcess(unread: unread)
      case .sendJob(let last): state.sendJob(last: last)
      case .finishJob: state.finishJob()
      case .beginSecret: state.beginSecret()
      case .beginGathering: state.beginGathering()
      case .beginRows: state.beginRows()
      case .beginProof: state.beginProof()
      case .beginBackup: state.beginBackup()
      case .awaitReader: state.awaitReader()
      case .finishAnswer: state.finishAnswer()
      case .close: state.close()
      case .drain: state.beginDraining()
      case .park: state.park()
      case .output: hasUnsentOutput = true
      case .sent: hasUnsentOutput = false
      case .queue: hasMoreWork = true
      case .serve: hasMoreWork = false
      case .stop(let stage): stop = stage
      }
    }
  }

  private typealias Conclusion = SessionState.Conclusion

  /// Inputs with the conclusion after each.
  private static let transcripts: [(name: String, steps: [(Input, Conclusion)])] = [
    ("a request with an answer", [(.receive(5), .rest), (.output, .rest), (.sent, .rest)]),
    ("the end of the input", [(.receive(0), .end)]),
    (
      "the end of the input behind a change",
      [(.sendJob(nil), .rest), (.receive(0), .rest), (.finishJob, .end), (.output, .rest), (.sent, .end)]
    ),
    ("the end of the input behind queued requests", [(.queue, .rest), (.receive(0), .rest), (.serve, .end)]),
    ("quit", [(.output, .rest), (.close, .rest), (.sent, .end)]),
    ("quit with more input waiting", [(.queue, .rest), (.close, .end)]),
    ("a hang-up", [(.hangUp, .rest), (.receive(5), .rest), (.receive(0), .end)]),
    (
      "the end of the process",
      [(.endProcess(unread: 5), .rest), (.receive(5), .refuseOrphan), (.close, .end)]
    ),
    ("the end of the process while nothing is unread", [(.endProcess(unread: 0), .refuseOrphan)]),
    (
      "the end of the process while the writer works",
      [(.sendJob(nil), .rest), (.endProcess(unread: 0), .rest), (.finishJob, .refuseOrphan)]
    ),
    (
      "the end of the process after the end of its input",
      [(.receive(0), .end), (.endProcess(unread: 0), .end)]
    ),
    (
      "the end of the process after a hang-up",
      [(.hangUp, .rest), (.endProcess(unread: 0), .rest), (.receive(0), .end)]
    ),
    ("a list", [(.beginRows, .rest), (.output, .rest), (.sent, .rest), (.finishAnswer, .rest)]),
    ("a list for a client that has hung up", [(.hangUp, .rest), (.beginRows, .rest), (.receive(0), .end)]),
    (
      "several secrets, of which none is sent before the last",
      [(.beginGathering, .rest), (.receive(0), .rest), (.finishAnswer, .end), (.beginSecret, .rest), (.sent, .rest)]
    ),
    (
      "a handover among secrets",
      [(.beginGathering, .rest), (.stop(.handingOver), .rest), (.stop(.handoverDue), .close)]
    ),
    ("the end of the input within a list", [(.beginRows, .rest), (.receive(0), .rest), (.finishAnswer, .end)]),
    (
      "the end of the input before a backup is read",
      [(.beginBackup, .rest), (.receive(0), .rest), (.awaitReader, .rest), (.finishAnswer, .end)]
    ),
    (
      "the end of the process before a backup is read",
      [
        (.beginBackup, .rest), (.endProcess(unread: 0), .rest), (.awaitReader, .rest), (.finishAnswer, .refuseOrphan),
        (.close, .end),
      ]
    ),
    (
      "a stop without a handover before a backup is read",
      [(.beginBackup, .rest), (.awaitReader, .rest), (.stop(.closingConnections), .rest), (.finishAnswer, .end)]
    ),
    (
      "a handover before a backup is read",
      [(.beginBackup, .rest), (.awaitReader, .rest), (.stop(.handingOver), .rest), (.stop(.handoverDue), .park)]
    ),
    (
      "a handover within a backup",
      [(.beginBackup, .rest), (.stop(.handingOver), .rest), (.stop(.handoverDue), .close)]
    ),
    ("discarding after the last answer", [(.close, .end), (.drain, .rest), (.receive(9), .rest)]),
    ("a stop without a handover", [(.stop(.closingConnections), .end)]),
    (
      "a stop without a handover while the writer works",
      [(.sendJob(nil), .rest), (.stop(.closingConnections), .rest), (.finishJob, .end)]
    ),
    ("a handover", [(.stop(.handingOver), .park)]),
    (
      "a handover while the client does not read",
      [(.output, .rest), (.stop(.handingOver), .rest), (.stop(.handoverDue), .park)]
    ),
    (
      "a handover while the writer works",
      [(.sendJob(nil), .rest), (.stop(.handingOver), .rest), (.stop(.handoverDue), .rest), (.finishJob, .park)]
    ),
    (
      "a handover within a list",
      [(.beginRows, .rest), (.stop(.handingOver), .rest), (.stop(.handoverDue), .close)]
    ),
    (
      "a handover before a proof is signed",
      [(.beginProof, .rest), (.stop(.handingOver), .rest), (.stop(.handoverDue), .close)]
    ),
    (
      "a handover before the proof of a service manager is signed",
      [(.receive(0), .end), (.beginProof, .rest), (.stop(.handingOver), .rest), (.stop(.handoverDue), .park)]
    ),
    ("a handover after the end of the input", [(.output, .rest), (.receive(0), .rest), (.stop(.handoverDue), .park)]),
    ("a handover after quit", [(.output, .rest), (.close, .rest), (.stop(.handoverDue), .park), (.sent, .end)]),
  ]

  @Test(arguments: transcripts.indices)
  func `each turn ends with the right action`(index: Int) {
    let (name, steps) = Self.transcripts[index]
    var transcript = Transcript()
    #expect(transcript.conclusion == .rest, "\(name)")
    for (place, (input, conclusion)) in steps.enumerated() {
      transcript.take(input)
      #expect(transcript.conclusion == conclusion, "\(name): step \(place), \(input)")
    }
  }

  // MARK: Requests

  @Test func `the writer gets several requests, but none after one with a secret or a backup`() {
    for last in [SessionState.ExclusiveAnswer.secret, .backup] {
      var state = SessionState()
      state.sendJob(last: nil)
      #expect(state.takesRequest(most: 3))
      state.sendJob(last: last)
      #expect(!state.takesRequest(most: 3))
      #expect(state.hasBackup == (last == .backup))
      state.finishJob()
      #expect(state.isAtWriter && !state.takesRequest(most: 3))
      state.finishJob()
      #expect(state.answer == .none && state.takesRequest(most: 3))
    }
  }

  @Test func `the number of requests at the writer is bounded`() {
    var state = SessionState()
    for _ in 0..<3 { state.sendJob(last: nil) }
    #expect(!state.takesRequest(most: 3))
    #expect(state.jobs == 3)
    state.finishJob()
    #expect(state.takesRequest(most: 3))
  }

  @Test(arguments: [Input.beginSecret, .beginGathering, .beginRows, .beginBackup])
  func `an exclusive answer holds back requests and events`(input: Input) {
    var transcript = Transcript()
    #expect(transcript.state.takesRequest(most: 1) && transcript.state.takesEvents)
    transcript.take(input)
    #expect(!transcript.state.takesRequest(most: 1) && !transcript.state.takesEvents)
    transcript.take(.finishAnswer)
    #expect(transcript.state.takesRequest(most: 1) && transcript.state.takesEvents)
  }

  @Test func `a client that reads no more does not end requests at the writer`() {
    var state = SessionState()
    state.sendJob(last: .backup)
    state.finishAnswer()
    #expect(state.isAtWriter)
  }

  @Test(arguments: [Input.close, .drain, .park])
  func `a connection that ends takes neither requests nor events`(input: Input) {
    var transcript = Transcript()
    transcript.take(input)
    #expect(!transcript.state.takesRequest(most: 1) && !transcript.state.takesEvents && !transcript.state.isAtRest)
  }

  @Test func `a backup waits for the reader, and a list does not`() {
    var state = SessionState()
    #expect(!state.wantsPiece(hasOutput: false))
    state.beginBackup()
    #expect(state.wantsPiece(hasOutput: false) && !state.wantsPiece(hasOutput: true))
    state.finishAnswer()
    state.beginRows()
    #expect(state.wantsPiece(hasOutput: false) && state.wantsPiece(hasOutput: true))
    state.beginGathering()
    #expect(state.wantsPiece(hasOutput: true) && state.isGathering && state.isWrittenAhead && !state.hasSecret)
  }

  @Test func `nothing follows a backup before the client has read it, and it holds no memory meanwhile`() {
    var state = SessionState()
    state.awaitReader()
    #expect(!state.awaitsReader, "there is no backup")
    state.beginBackup()
    #expect(state.hasBackup && !state.awaitsReader)
    state.awaitReader()
    #expect(state.awaitsReader && !state.hasBackup && !state.hasLongAnswer)
    #expect(
      !state.takesRequest(most: 1) && !state.takesEvents && !state.isAtRest && !state.wantsPiece(hasOutput: false))
    state.finishAnswer()
    #expect(!state.awaitsReader && state.takesRequest(most: 1) && state.takesEvents && state.isAtRest)
  }

  // MARK: Input

  @Test func `only the bytes that the process sent before its end count`() {
    var state = SessionState()
    state.endProcess(unread: 7)
    #expect(state.receive(5) == 5)
    #expect(state.mayRead)
    #expect(state.receive(5) == 2)
    #expect(!state.mayRead)
    #expect(state.reading == .remaining(0))
  }

  @Test func `a hang-up does not change the bytes that count`() {
    var state = SessionState()
    state.endProcess(unread: 2)
    state.hangUp()
    #expect(state.receive(5) == 2)
  }

  @Test func `discarded input is counted`() {
    var state = SessionState()
    #expect(state.discard(3) == 0)
    state.close()
    state.beginDraining()
    #expect(state.discard(3) == 3)
    #expect(state.discard(4) == 7)
    #expect(state.isDraining)
  }

  // MARK: Handover

  @Test(arguments: [false, true], [false, true])
  func `the next run takes the state over`(hasEnded: Bool, isClosing: Bool) {
    var before = Transcript()
    before.take(.output)
    if hasEnded { before.take(.receive(0)) }
    if isClosing { before.take(.close) }
    before.take(.stop(.handoverDue))
    #expect(before.conclusion == .park)
    before.take(.park)
    #expect(before.state.isClosing == isClosing)
    let after = SessionState(hasEnded: before.state.hasEnded, isClosing: before.state.isClosing, hasOutput: true)
    #expect(after.hasEnded == hasEnded)
    #expect(after.isClosing == isClosing)
    // The output may contain a secret, so nothing may follow before it is sent.
    #expect(!after.takesRequest(most: 1))
    #expect(after.conclusion(hasUnsentOutput: true, hasMoreWork: false, stop: .running) == .rest)
  }
}
