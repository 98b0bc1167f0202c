import LinuxSystem

/// The loop's end of the two mailboxes between the loop and the writer, and the writer's thread.
///
/// Jobs of one turn are collected, and the writer is woken for them once, so that they share a commit.
final class WriterChannel {
  /// The messages to the writer.
  let inbox: Mailbox<WriterMessage>
  /// The writer's reports.
  let outbox: Mailbox<WriterReport>
  /// The writer's flag for the watchdog.
  let activity = WriterActivity()
  private var thread: Thread?
  /// Whether a turn is in progress, in which jobs are collected.
  private var isInTurn = false
  /// Whether the inbox has jobs that the writer was not woken for.
  private var owesBell = false

  init() throws(SystemError) {
    inbox = try Mailbox(blocking: true)
    outbox = try Mailbox(blocking: false)
  }

  /// The descriptor that becomes readable once the writer has reported.
  var reportDescriptor: Int32 { outbox.descriptor }

  /// The number of messages that the writer has not taken.
  var queueLength: Int { inbox.count }

  /// Sends a message and wakes the writer.
  func send(_ message: WriterMessage) { inbox.send(message) }

  /// Sends a job. Within a turn, the writer is woken at the end of the turn.
  func submit(_ job: Job) {
    if inbox.put(.job(job)) { owesBell = true }
    if !isInTurn { ringForJobs() }
  }

  /// Runs a turn, and wakes the writer at most once afterwards.
  func inTurn(_ body: () -> Void) {
    isInTurn = true
    body()
    isInTurn = false
    ringForJobs()
  }

  private func ringForJobs() {
    guard owesBell else { return }
    owesBell = false
    inbox.ring()
  }

  /// Removes and returns the reports that have arrived.
  func takeReports() -> [WriterReport] { outbox.takeAll(waits: false) }

  /// Starts the writer's thread.
  func start(_ writer: sending Writer) throws(SystemError) {
    thread = try Thread(named: "writer") { [inbox] in writer.run(inbox) }
  }

  /// Waits until the writer's thread has ended.
  func join() { if let thread = thread.take() { thread.join() } }
}
