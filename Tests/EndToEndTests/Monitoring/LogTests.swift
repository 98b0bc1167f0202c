import Foundation
import IdentityCore
import TestSupport
import Testing

/// A reader of log lines from a pipe.
private final class LogReader {
  private let handle: FileHandle
  private var received = Data()

  init(_ handle: FileHandle) { self.handle = handle }

  /// Returns the lines up to the first one that contains the text. Later lines stay for the next call.
  func lines(upTo text: String) throws -> [String] {
    var lines: [String] = []
    while lines.last?.contains(text) != true {
      if let end = received.firstIndex(of: UInt8(ascii: "\n")) {
        lines.append(String(decoding: received[..<end], as: UTF8.self))
        received = Data(received[(end + 1)...])
      } else {
        let more = handle.availableData
        if more.isEmpty { throw Failure("'\(text)' was not logged: \(lines.suffix(5))") }
        received += more
      }
    }
    return lines
  }

  /// Returns the remaining text up to the end of the stream.
  func rest() throws -> String {
    String(decoding: received + (try handle.readToEnd() ?? Data()), as: UTF8.self)
  }
}

/// The log on standard error, which may be a full pipe, a full disk or a FIFO without a reader. No request waits for
/// the log, and a stop waits only for a moment.
@Suite(.enabled(if: isRoot, "what is logged over and over takes an admin"), .tags(.threads)) struct LogTests {
  private let daemon: DaemonUnderTest

  init() throws { daemon = try DaemonUnderTest() }

  /// Starts the daemon with a pipe as standard error. The pipe has room for a page, and nobody reads it yet.
  private func startOnPipe() throws -> LogReader {
    let pipe = Pipe()
    #expect(fcntl(pipe.fileHandleForWriting.fileDescriptor, Self.setPipeSize, 4_096) == 4_096)
    try daemon.start(on: pipe.fileHandleForWriting)
    // From here on only the daemon has a writing end.
    try pipe.fileHandleForWriting.close()
    return LogReader(pipe.fileHandleForReading)
  }

  /// The command F_SETPIPE_SZ of fcntl(2).
  private static let setPipeSize: Int32 = 1_031

  /// Causes log entries by renewing the device.
  ///
  /// - Parameter count: the number of entries.
  /// - Returns: the new identifiers, in the order of their entries.
  private func renewals(_ count: Int) throws -> [String] {
    let client = try daemon.client()
    let inFlight = 100
    var made: [String] = []
    while made.count < count {
      let turn = min(inFlight, count - made.count)
      try client.send(String(repeating: "renew device\n", count: turn))
      for _ in 0..<turn {
        let words = try client.answer().last?.split(separator: " ") ?? []
        #expect(words.count >= 2 && words[0] == "OK", "\(words)")
        made.append(String(words[1]))
      }
    }
    return made
  }

  /// Returns the identifiers in the entries about renewals, in the order of the lines.
  private func told(_ lines: [String]) -> [String] {
    lines.filter { $0.hasSuffix("from now on (renewed).") }.map { String($0.split(separator: " ")[5]) }
  }

  /// Returns the number of missing entries that a line reports.
  private func missing(_ line: String?) throws -> Int {
    let prefix = "identityd: warning: Entries are missing here, "
    let line = try #require(line)
    #expect(line.hasPrefix(prefix), "\(line)")
    return try #require(Int(line.split(separator: " ").last?.dropLast() ?? ""), "\(line)")
  }

  // MARK: Unread pipe

  @Test func `row 46: a full log pipe delays no request, and the missing entries are counted in the log`() throws {
    let pipe = try startOnPipe()
    // Each renewal is answered although nobody reads the log.
    let made = try renewals(6_000)
    let beforeReading = try pipe.lines(upTo: "Entries are missing here")
    let shown = told(beforeReading)
    #expect(shown == Array(made.prefix(shown.count)))
    #expect(try missing(beforeReading.last) + shown.count == made.count)
    // At most the entries in the queue and those in the pipe are shown.
    #expect(shown.count <= Bound.logEntries - Bound.logReservedEntries + 4_096 / 80)
    #expect(shown.count > Bound.logEntries / 2)
    let later = try renewals(3)
    #expect(told(try pipe.lines(upTo: later[2])) == later)
    #expect(daemon.end() == 0)
    #expect(try pipe.rest().hasSuffix("identityd: Stopped.\n"))
  }

  @Test(arguments: [SIGTERM, SIGINT])
  func `row 46: a full log pipe delays the stop only briefly`(signal: Int32) throws {
    let pipe = try startOnPipe()
    _ = try renewals(200)
    let before = ContinuousClock.now
    kill(daemon.process.processIdentifier, signal)
    // A daemon that waited for a reader would be killed, which shows in the status.
    #expect(daemon.exitStatus() == 0)
    // The daemon did wait for a moment, in which a reader would have received the entries.
    #expect(ContinuousClock.now - before >= .milliseconds(Bound.logEndMilliseconds))
    #expect(!FileManager.default.fileExists(atPath: daemon.socket))
    _ = try pipe.rest()
  }

  @Test func `row 46: a full log pipe delays a refused start only briefly`() throws {
    let pipe = Pipe()
    let writing = pipe.fileHandleForWriting
    #expect(fcntl(writing.fileDescriptor, Self.setPipeSize, 4_096) == 4_096)
    try writing.write(contentsOf: Data(repeating: 0x2e, count: 4_096))
    try daemon.configure("[Log]\nLevel=loud\n")
    try daemon.launch(on: writing)
    #expect(daemon.exitStatus() == 78)
  }

  @Test func `row 46: all entries are written before the exit if the pipe is read`() throws {
    let pipe = try startOnPipe()
    let made = try renewals(500)
    kill(daemon.process.processIdentifier, SIGTERM)
    let text = try pipe.rest()
    #expect(daemon.exitStatus() == 0)
    #expect(told(text.components(separatedBy: "\n")) == made)
    #expect(text.hasSuffix("identityd: Stopping.\nidentityd: Stopped.\n"))
  }

  // MARK: Failing output

  @Test func `row 46: a full disk behind standard error does no harm`() throws {
    let full = try FileHandle(forWritingTo: URL(filePath: "/dev/full"))
    try daemon.start(on: full)
    _ = try renewals(200)
    #expect(try daemon.ask("ping") == "OK")
    #expect(daemon.end() == 0)
  }

  @Test func `row 46: entries lost while a pipe has no reader are counted for the next reader`() throws {
    let path = daemon.folder.appending(path: "fifo").path
    let made = unsafe mkfifo(path, 0o600)
    #expect(made == 0)
    func reader() -> FileHandle {
      FileHandle(fileDescriptor: unsafe open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), closeOnDealloc: true)
    }
    let first = reader()
    let writing = try FileHandle(forWritingTo: URL(filePath: path))
    try daemon.start(on: writing)
    try writing.close()
    try first.close()
    let lost = try renewals(200)
    let second = reader()
    // From now on, reads block.
    #expect(fcntl(second.fileDescriptor, F_SETFL, 0) == 0)
    let later = try renewals(2)
    let log = LogReader(second)
    let shown = try log.lines(upTo: "Entries are missing here")
    #expect(daemon.end() == 0)
    let rest = try log.rest().components(separatedBy: "\n")
    let all = told(shown + rest)
    #expect(Set(all).isSuperset(of: later))
    #expect(all == Array((lost + later).suffix(all.count)))
    // The entries of the start may be among the lost ones.
    #expect((0...4).contains(try missing(shown.last) + all.count - lost.count - later.count), "\(shown) \(rest)")
  }

  @Test func `row 46: without a thread for the log there is no start, and the reason is printed`() throws {
    // Uses the release build, because a sanitizer itself needs a thread.
    let daemon = try DaemonUnderTest(of: DaemonUnderTest.released)
    // This user has no other process, so the limit leaves no room for a thread.
    let alone = ["setpriv", "--reuid=64123", "--regid=64123", "--clear-groups", "prlimit", "--nproc=1:1"]
    try daemon.launch(through: alone)
    #expect(daemon.exitStatus() == 1)
    #expect(daemon.log == "identityd: err: pthread_create: Resource temporarily unavailable\n")
    #expect(!FileManager.default.fileExists(atPath: daemon.state.path))
  }

  // MARK: Injection

  private static let hostile = "evil\nidentityd: err: forged\r<3>\u{1b}[2J"

  @Test func `row 51: a name that contains a line end stays in one log line`() throws {
    try daemon.configure("[Log]\nNo\u{1b}such=1\n")
    try daemon.launch(["--socket", "\(daemon.folder.path)/\(Self.hostile)"])
    try daemon.waitForLog(#"/evil\nidentityd: err: forged\r<3>\u001b[2J."#)
    try daemon.waitForLog(#"No\u001bsuch"#)
    let lines = daemon.log.split(separator: "\n")
    #expect(lines.allSatisfy { $0.hasPrefix("identityd: ") && !$0.hasPrefix("identityd: err: ") }, "\(lines)")
    #expect(!daemon.log.utf8.contains(0x1b))
  }

  @Test func `row 51: --check-config writes no control characters to the terminal`() throws {
    try daemon.configure("[Log]\nNo\u{1b}[2Jsuch=1\n")
    try daemon.launch(["--check-config"])
    #expect(daemon.exitStatus() == 0)
    #expect(daemon.log.contains(#"No\u001b[2Jsuch"#), "\(daemon.log)")
    #expect(!daemon.log.utf8.contains(0x1b))
    try daemon.configure("[Log]\nLevel=\u{1b}[2J\n")
    try daemon.launch(["--check-config"])
    #expect(daemon.exitStatus() == 78)
    #expect(!daemon.log.utf8.contains(0x1b))
  }
}
