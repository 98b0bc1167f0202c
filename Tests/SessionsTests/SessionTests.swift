import IdentityCore
import Testing

@testable import Sessions

/// Transcripts of connections: the inputs, and the action that ends each turn.
struct SessionTests {
  /// One input of a connection, or a fact about the daemon.
  enum Input {
    case receive(Int)
    case hangUp
    case endProcess(unread: Int)
    case sendJob(Session.ExclusiveAnswer?)
    case finishJob
    case beginSecret, finishAnswer
    case begin(Session.Pieces)
    case wait(Session.Awaited)
    case close, drain, park
    /// Output is pending, and then sent.
    case output, sent
    /// The connection waits for another turn, and then had it.
    case queue, serve
    case stop(StopStage)
  }

  /// A connection with the facts that its state does not hold.
  struct Transcript {
    var state = Session()
    var hasUnsentOutput = false
    var hasMoreWork = false
    var stop = StopStage.running

    var conclusion: Session.Conclusion {
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
      case .begin(let pieces): state.begin(pieces)
      case .wait(let awaited): state.wait(for: awaited)
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

  private typealias Conclusion = Session.Conclusion

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
    ("a list", [(.begin(.rows), .rest), (.output, .rest), (.sent, .rest), (.finishAnswer, .rest)]),
    ("a list for a client that has hung up", [(.hangUp, .rest), (.begin(.rows), .rest), (.receive(0), .end)]),
    (
      "several secrets, of which none is sent before the last",
      [(.begin(.secrets), .rest), (.receive(0), .rest), (.finishAnswer, .end), (.beginSecret, .rest), (.sent, .rest)]
    ),
    (
      "a handover among secrets",
      [(.begin(.secrets), .rest), (.stop(.handingOver), .rest), (.stop(.handoverDue), .close)]
    ),
    ("the end of the input within a list", [(.begin(.rows), .rest), (.receive(0), .rest), (.finishAnswer, .end)]),
    (
      "the end of the input before a backup is read",
      [(.begin(.backup), .rest), (.receive(0), .rest), (.wait(.reader), .rest), (.finishAnswer, .end)]
    ),
    (
      "the end of the process before a backup is read",
      [
        (.begin(.backup), .rest), (.endProcess(unread: 0), .rest), (.wait(.reader), .rest),
        (.finishAnswer, .refuseOrphan),
        (.close, .end),
      ]
    ),
    (
      "a stop without a handover before a backup is read",
      [(.begin(.backup), .rest), (.wait(.reader), .rest), (.stop(.closingConnections), .rest), (.finishAnswer, .end)]
    ),
    (
      "a handover before a backup is read",
      [(.begin(.backup), .rest), (.wait(.reader), .rest), (.stop(.handingOver), .rest), (.stop(.handoverDue), .park)]
    ),
    (
      "a handover within a backup",
      [(.begin(.backup), .rest), (.stop(.handingOver), .rest), (.stop(.handoverDue), .close)]
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
      [(.begin(.rows), .rest), (.stop(.handingOver), .rest), (.stop(.handoverDue), .close)]
    ),
    (
      "a handover before a proof is signed",
      [(.wait(.signature), .rest), (.stop(.handingOver), .rest), (.stop(.handoverDue), .close)]
    ),
    (
      "a handover before the proof of a service manager is signed",
      [(.receive(0), .end), (.wait(.signature), .rest), (.stop(.handingOver), .rest), (.stop(.handoverDue), .park)]
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
    for last in [Session.ExclusiveAnswer.secret, .backup] {
      var state = Session()
      state.sendJob(last: nil)
      #expect(state.takesRequest(most: 3))
      state.sendJob(last: last)
      #expect(!state.takesRequest(most: 3))
      #expect(state.answer == .writer(jobs: 2, last: last))
      state.finishJob()
      #expect(state.isAtWriter && !state.takesRequest(most: 3))
      state.finishJob()
      #expect(state.answer == .none && state.takesRequest(most: 3))
    }
  }

  @Test func `the number of requests at the writer is bounded`() {
    var state = Session()
    for _ in 0..<3 { state.sendJob(last: nil) }
    #expect(!state.takesRequest(most: 3))
    #expect(state.jobs == 3)
    state.finishJob()
    #expect(state.takesRequest(most: 3))
  }

  @Test(arguments: [Input.beginSecret, .begin(.secrets), .begin(.rows), .begin(.backup)])
  func `an exclusive answer holds back requests and events`(input: Input) {
    var transcript = Transcript()
    #expect(transcript.state.takesRequest(most: 1) && transcript.state.takesEvents)
    transcript.take(input)
    #expect(!transcript.state.takesRequest(most: 1) && !transcript.state.takesEvents)
    transcript.take(.finishAnswer)
    #expect(transcript.state.takesRequest(most: 1) && transcript.state.takesEvents)
  }

  @Test func `a client that reads no more does not end requests at the writer`() {
    var state = Session()
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
    var state = Session()
    #expect(!state.wantsPiece(hasOutput: false))
    state.begin(.backup)
    #expect(state.wantsPiece(hasOutput: false) && !state.wantsPiece(hasOutput: true))
    state.finishAnswer()
    state.begin(.rows)
    #expect(state.wantsPiece(hasOutput: false) && state.wantsPiece(hasOutput: true))
    state.begin(.secrets)
    #expect(
      state.wantsPiece(hasOutput: true) && state.answer == .pieces(.secrets) && state.isWrittenAhead && !state.hasSecret
    )
  }

  @Test func `nothing follows a backup before the client has read it, and it holds no memory meanwhile`() {
    var state = Session()
    state.wait(for: .reader)
    #expect(!state.awaitsReader, "there is no backup")
    state.begin(.backup)
    #expect(state.hasLongAnswer && !state.awaitsReader)
    state.wait(for: .reader)
    #expect(state.awaitsReader && !state.hasLongAnswer)
    #expect(
      !state.takesRequest(most: 1) && !state.takesEvents && !state.isAtRest && !state.wantsPiece(hasOutput: false))
    state.finishAnswer()
    #expect(!state.awaitsReader && state.takesRequest(most: 1) && state.takesEvents && state.isAtRest)
  }

  // MARK: Input

  @Test func `only the bytes that the process sent before its end count`() {
    var state = Session()
    state.endProcess(unread: 7)
    #expect(state.receive(5) == 5)
    #expect(state.reading.mayGoOn)
    #expect(state.receive(5) == 2)
    #expect(!state.reading.mayGoOn)
    #expect(state.reading == .remaining(0))
  }

  @Test func `a hang-up does not change the bytes that count`() {
    var state = Session()
    state.endProcess(unread: 2)
    state.hangUp()
    #expect(state.receive(5) == 2)
  }

  @Test func `discarded input is counted`() {
    var state = Session()
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
    let after = Session(hasEnded: before.state.hasEnded, isClosing: before.state.isClosing, hasOutput: true)
    #expect(after.hasEnded == hasEnded)
    #expect(after.isClosing == isClosing)
    // The output may contain a secret, so nothing may follow before it is sent.
    #expect(!after.takesRequest(most: 1))
    #expect(after.conclusion(hasUnsentOutput: true, hasMoreWork: false, stop: .running) == .rest)
  }
}

// MARK: - Framing

extension SessionTests {
  /// Returns the steps in an input, in which a line has at most 16 bytes, up to the first that ends them.
  private func steps(_ session: inout Session, _ text: String, hasRoom: Bool = true) -> [Session.Step] {
    let input = Array(text.utf8)
    var steps: [Session.Step] = []
    var start = 0
    while true {
      let step = session.next(in: input.span, from: start, limit: 16, hasRoom)
      steps.append(step)
      guard case .carryOut(_, let next) = step else { break }
      session.countRequests()
      start = next
    }
    session.drop(start)
    return steps
  }

  @Test func `each line is a request, with either end of line`() {
    var session = Session()
    #expect(
      steps(&session, "ping\nhello\r\n\n\r\nge") == [
        .carryOut(0..<4, next: 5), .carryOut(5..<10, next: 12), .carryOut(12..<12, next: 13),
        .carryOut(13..<13, next: 15), .wait,
      ])
    #expect(session.requests == 4 && !session.mayHaveRequest(in: 2))
    // The rest of the line has arrived.
    #expect(session.mayHaveRequest(in: 5))
    #expect(steps(&session, "get\nx") == [.carryOut(0..<3, next: 4), .wait])
  }

  @Test func `bytes that came slowly are searched once`() {
    var session = Session()
    #expect(steps(&session, "get d") == [.wait])
    // A line feed among the bytes that were searched would be found otherwise.
    #expect(steps(&session, "g\n dev\n") == [.carryOut(0..<6, next: 7), .wait])
  }

  @Test(arguments: ["0123456789abcdef", "0123456789abcdef\n", "ping\n0123456789abcdef"])
  func `a line that is too long closes the connection`(text: String) {
    var session = Session()
    #expect(steps(&session, text).last == .refuse(.tooLong(limit: 16)) && session.isClosing)
    #expect(session.conclusion(hasUnsentOutput: true, hasMoreWork: false, stop: .running) == .rest)
    #expect(session.conclusion(hasUnsentOutput: false, hasMoreWork: false, stop: .running) == .end)
  }

  @Test func `the longest line is carried out`() {
    var session = Session()
    #expect(steps(&session, "0123456789abcde\n") == [.carryOut(0..<15, next: 16), .wait])
    #expect(steps(&session, "0123456789abcd\r\n") == [.carryOut(0..<14, next: 16), .wait])
    #expect(!session.isClosing)
  }

  @Test(arguments: ["0123456789abcdef", "0123456789abcdef\n"])
  func `a line that is too long is refused after the answers before it`(text: String) {
    var session = Session()
    session.sendJob(last: nil)
    #expect(steps(&session, text) == [.wait] && !session.isClosing)
    session.finishJob()
    #expect(steps(&session, text) == [.refuse(.tooLong(limit: 16))] && session.isClosing)
  }

  @Test func `a JSON object is refused as the first message only`() {
    var session = Session()
    #expect(steps(&session, "{\"a\":1}\0") == [.refuse(.syntax(.json))] && session.isClosing)
    var other = Session()
    #expect(steps(&other, "ping\n{\"a\":1}\0") == [.carryOut(0..<4, next: 5), .wait])
    #expect(steps(&other, "{\"a\":1}\0") == [.wait] && !other.isClosing)
  }

  @Test func `nothing is carried out without room`() {
    var session = Session()
    #expect(steps(&session, "ping\n", hasRoom: false) == [.wait])
    #expect(session.mayHaveRequest(in: 5))
    #expect(steps(&session, "ping\n") == [.carryOut(0..<4, next: 5), .wait])
  }
}
