import Foundation
import IdentityCore
import TestSupport
import Testing

/// Reads what is logged to a pipe.
private final class LogReader {
  private let handle: FileHandle
  private var received = Data()

  init(_ handle: FileHandle) { self.handle = handle }

  /// The lines up to the first that holds the text; those behind it are for the next time.
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

  /// Everything up to the end.
  func rest() throws -> String {
    String(decoding: received + (try handle.readToEnd() ?? Data()), as: UTF8.self)
  }
}

/// The log, and that nobody waits for it: standard error is a pipe, or what else it may be.
@Suite(.enabled(if: isRoot, "what is logged over and over takes an admin")) struct LogTests {
  private let daemon: DaemonUnderTest

  init() throws { daemon = try DaemonUnderTest() }

  /// Starts the daemon on a pipe that has room for a page, and which nobody reads yet.
  private func startOnPipe() throws -> LogReader {
    let pipe = Pipe()
    #expect(fcntl(pipe.fileHandleForWriting.fileDescriptor, Self.setPipeSize, 4_096) == 4_096)
    try daemon.start(on: pipe.fileHandleForWriting)
    // The daemon's is the only end from here on.
    try pipe.fileHandleForWriting.close()
    return LogReader(pipe.fileHandleForReading)
  }

  /// F_SETPIPE_SZ.
  private static let setPipeSize: Int32 = 1_031

  /// Has something logged that many times.
  ///
  /// - Returns: what each entry has to tell, in order.
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

  /// What the entries about renewals tell, in the order of the lines.
  private func told(_ lines: [String]) -> [String] {
    lines.filter { $0.hasSuffix("from now on (renewed).") }.map { String($0.split(separator: " ")[4]) }
  }

  /// How many entries a line says are missing.
  private func missing(_ line: String?) throws -> Int {
    let prefix = "identityd: warning: Entries are missing here, "
    let line = try #require(line)
    #expect(line.hasPrefix(prefix), "\(line)")
    return try #require(Int(line.split(separator: " ").last?.dropLast() ?? ""), "\(line)")
  }

  // MARK: Nobody reads

  @Test func `row 46: a pipe that nobody reads holds nobody up, and what is missing is said`() throws {
    let pipe = try startOnPipe()
    // Each is answered here and now.
    let made = try renewals(6_000)
    let beforeReading = try pipe.lines(upTo: "Entries are missing here")
    let shown = told(beforeReading)
    #expect(shown == Array(made.prefix(shown.count)))
    #expect(try missing(beforeReading.last) + shown.count == made.count)
    // As many as wait, and those in the pipe.
    #expect(shown.count <= Bound.logEntries - Bound.logReservedEntries + 4_096 / 80)
    #expect(shown.count > Bound.logEntries / 2)
    let later = try renewals(3)
    #expect(told(try pipe.lines(upTo: later[2])) == later)
    #expect(daemon.end() == 0)
    #expect(try pipe.rest().hasSuffix("identityd: Stopped.\n"))
  }

  @Test(arguments: [SIGTERM, SIGINT])
  func `row 46: a full pipe keeps the daemon from its end for no longer than a moment`(signal: Int32) throws {
    let pipe = try startOnPipe()
    _ = try renewals(200)
    let before = ContinuousClock.now
    kill(daemon.process.processIdentifier, signal)
    // One that waited for somebody to read would have to be killed.
    #expect(daemon.exitStatus() == 0)
    // It did wait: what was logged would have been written.
    #expect(ContinuousClock.now - before >= .milliseconds(Bound.logEndMilliseconds))
    #expect(!FileManager.default.fileExists(atPath: daemon.socket))
    _ = try pipe.rest()
  }

  @Test func `row 46: a full pipe keeps a start from being refused for no longer than a moment`() throws {
    let pipe = Pipe()
    let writing = pipe.fileHandleForWriting
    #expect(fcntl(writing.fileDescriptor, Self.setPipeSize, 4_096) == 4_096)
    try writing.write(contentsOf: Data(repeating: 0x2e, count: 4_096))
    try daemon.configure("[Log]\nLevel=loud\n")
    try daemon.launch(on: writing)
    #expect(daemon.exitStatus() == 78)
  }

  @Test func `row 46: everything is written before the end where somebody reads`() throws {
    let pipe = try startOnPipe()
    let made = try renewals(500)
    kill(daemon.process.processIdentifier, SIGTERM)
    let text = try pipe.rest()
    #expect(daemon.exitStatus() == 0)
    #expect(told(text.components(separatedBy: "\n")) == made)
    #expect(text.hasSuffix("identityd: Stopping.\nidentityd: Stopped.\n"))
  }

  // MARK: Nobody is there

  @Test func `row 46: a full disk behind standard error does no harm`() throws {
    let full = try FileHandle(forWritingTo: URL(filePath: "/dev/full"))
    try daemon.start(on: full)
    _ = try renewals(200)
    #expect(try daemon.ask("ping") == "OK")
    #expect(daemon.end() == 0)
  }

  @Test func `row 46: what a pipe lost whose reader went is counted when another comes`() throws {
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
    // Now reading waits for what comes.
    #expect(fcntl(second.fileDescriptor, F_SETFL, 0) == 0)
    let later = try renewals(2)
    let log = LogReader(second)
    let shown = try log.lines(upTo: "Entries are missing here")
    #expect(daemon.end() == 0)
    let rest = try log.rest().components(separatedBy: "\n")
    let all = told(shown + rest)
    #expect(Set(all).isSuperset(of: later))
    #expect(all == Array((lost + later).suffix(all.count)))
    // What comes with a start may be among those that were lost.
    #expect((0...4).contains(try missing(shown.last) + all.count - lost.count - later.count), "\(shown) \(rest)")
  }

  @Test func `row 46: without a thread for the log there is no start, and the reason is said all the same`() throws {
    // A sanitizer needs a thread itself.
    let daemon = try DaemonUnderTest(of: DaemonUnderTest.released)
    // A user of its own, whose one process this is.
    let alone = ["setpriv", "--reuid=64123", "--regid=64123", "--clear-groups", "prlimit", "--nproc=1:1"]
    try daemon.launch(through: alone)
    #expect(daemon.exitStatus() == 1)
    #expect(daemon.log == "identityd: err: pthread_create: Resource temporarily unavailable\n")
    #expect(!FileManager.default.fileExists(atPath: daemon.state.path))
  }

  // MARK: Injection

  private static let hostile = "evil\nidentityd: err: forged\r<3>\u{1b}[2J"

  @Test func `row 51: a name with a line's end in it stays in its line`() throws {
    try daemon.configure("[Log]\nNo\u{1b}such=1\n")
    try daemon.launch(["--socket", "\(daemon.folder.path)/\(Self.hostile)"])
    try daemon.waitForLog(#"/evil\nidentityd: err: forged\r<3>\u001b[2J."#)
    try daemon.waitForLog(#"No\u001bsuch"#)
    let lines = daemon.log.split(separator: "\n")
    #expect(lines.allSatisfy { $0.hasPrefix("identityd: ") && !$0.hasPrefix("identityd: err: ") }, "\(lines)")
    #expect(!daemon.log.utf8.contains(0x1b))
  }

  @Test func `row 51: a check of the configuration sends no escapes to the terminal`() throws {
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
