import ClientFormats
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem

// `top`: shows the activity of the daemon on the whole terminal.
extension Program {
  /// Shows the activity of the daemon until the user quits.
  static func top(_ line: CommandLine) throws -> Int32 {
    guard line.words.count == 1 else { throw CommandLine.UsageError("'top' takes no words") }
    for other in ["json", "quiet"] where line.options[other] != nil {
      throw CommandLine.UsageError("'--\(other)' cannot be combined with 'top'; 'stats' writes the same metrics")
    }
    let interval = try line.options["interval"].map { try Options.microseconds($0, of: "interval") } ?? 2_000_000
    guard interval >= 100_000 else { throw CommandLine.UsageError("--interval must be at least 0.1") }
    guard StandardStream.output.isTerminal, Environment["TERM"] ?? "dumb" != "dumb", let screen = try TerminalScreen()
    else { throw CommandLine.UsageError("'top' requires a terminal; 'stats' writes the same metrics anywhere") }
    var top = Top(
      daemon: DaemonSocket(line.options["socket"]),
      format: try UUIDFormat(named: line.options["format"] ?? "hyphen"))
    // Fails at once if there is no daemon at the start. A busy daemon has ten seconds for its first answers.
    try top.look(within: 10_000_000)
    return try screen.run { try watch(&top, on: screen, interval) }
  }

  private static func watch(_ top: inout Top, on screen: TerminalScreen, _ interval: UInt64) throws -> Int32 {
    var next = Clock.monotonicMicroseconds + interval
    while true {
      let (columns, lines) = screen.size
      screen.show(top.lines(columns, lines))
      switch try screen.wait(until: next) {
      case .key(UInt8(ascii: "q")), .key(UInt8(ascii: "Q")): return ExitStatus.success
      case .gone: return ExitStatus.outputFailed
      case .key, .changed: continue
      case .timeUp:
        next = Clock.monotonicMicroseconds + interval
        do throws(DaemonConnection.Failure) {
          try top.look(within: min(interval, 1_000_000))
        } catch {
          top.lose(error)
        }
      }
    }
  }
}

/// The connection to the daemon, its last two samples and its latest events.
private struct Top: ~Copyable {
  /// The number of events kept for display.
  private static let shownEvents = 64

  private let daemon: DaemonSocket
  private let output: EventOutput
  private var connection: DaemonConnection?
  private var before: TopSample?
  private var now: TopSample?
  private var events: [String] = []
  private var notice: String?

  init(daemon: DaemonSocket, format: UUIDFormat) {
    self.daemon = daemon
    output = EventOutput(format, .text(isColoured: false))
  }

  /// Takes a new sample from the daemon, and connects first if there is no connection.
  ///
  /// - Parameter time: the time limit of all answers together, in microseconds.
  mutating func look(within time: UInt64) throws(DaemonConnection.Failure) {
    let limit = Patience(until: Clock.monotonicMicroseconds + time, needsOutput: false)
    var daemon: DaemonConnection
    if let held = connection.take() { daemon = held } else { daemon = try connect(limit) }
    let figures = try Self.ask(["stats"], &daemon, limit)
    let apps = try Self.ask(["stats", "apps=yes"], &daemon, limit)
    let sample = TopSample(
      moment: Clock.monotonicMicroseconds, figures: figures.compactMap { MetricSample($0) },
      apps: apps.compactMap { TopSample.App($0) })
    for event in daemon.takeEvents() { events.append(String(output.line(event).dropLast())) }
    events.removeFirst(max(0, events.count - Self.shownEvents))
    before = now
    now = sample
    notice = nil
    connection = consume daemon
  }

  /// Connects and subscribes. The first connection also replays the latest events.
  ///
  /// No events are shown if the daemon has too many subscribers.
  private func connect(_ patience: Patience) throws(DaemonConnection.Failure) -> DaemonConnection {
    var connection = try DaemonConnection(atOnce: daemon)
    let answer = try connection.ask(RequestLine(words: ["subscribe"]), patience)
    if case .ok(let content) = answer.final, let last = content.words.first.flatMap({ Int64("\($0)") }), events.isEmpty
    {
      let start = max(0, last - Int64(Self.shownEvents))
      _ = try connection.ask(RequestLine(words: ["subscribe", "since=\(start)"]), patience)
    }
    return connection
  }

  /// Sends a request and returns the rows of the answer.
  private static func ask(
    _ words: [String], _ connection: inout DaemonConnection, _ patience: Patience
  ) throws(DaemonConnection.Failure) -> [ReplyLine.Content] {
    let answer = try connection.ask(RequestLine(words: words), patience)
    if case .error(let code, let text) = answer.final {
      throw code == "busy" ? .busy("\(text)") : .malformed("\(text) (\(code))")
    }
    return answer.rows
  }

  /// Records that the daemon could not be asked. The last sample stays on display, with a notice.
  mutating func lose(_ failure: DaemonConnection.Failure) {
    connection = nil
    notice = "the daemon is gone; its last values are shown until it is back  q quits"
    if case .busy(let why) = failure { notice = "the daemon is busy (\(why)); retrying  q quits" }
    switch failure {
    case .malformed, .untrusted: notice = "\(failure)"
    default: break
    }
  }

  func lines(_ columns: Int, _ lines: Int) -> [TerminalScreen.Line] {
    guard let now else { return [] }
    return TopLayout(columns: columns, lines: lines).lines(before, now, events: events, notice: notice).map {
      TerminalScreen.Line($0.text, isHead: $0.isHead)
    }
  }
}
