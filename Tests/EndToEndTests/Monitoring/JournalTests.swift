import Foundation
import TestSupport
import Testing

/// The log if standard error is the journal. The test acts as the journal.
@Suite(.enabled(if: isRoot, "playing the journal takes a namespace"), .tags(.threads)) struct JournalTests {
  private let daemon: DaemonUnderTest
  private let journal: PlayedJournal

  init() throws {
    daemon = try DaemonUnderTest()
    journal = try PlayedJournal(in: daemon.folder)
  }

  private func renew(_ count: Int) throws -> [String] {
    let client = try daemon.client()
    return try (0..<count).map { _ in String(try client.ask("renew device")[0].split(separator: " ")[1]) }
  }

  private func told(_ messages: [String]) -> [String] {
    messages.filter { $0.hasSuffix("from now on (renewed).") }.map { String($0.split(separator: " ")[4]) }
  }

  @Test func `row 46: a blocked journal delays no request, and the log counts the missing entries`() throws {
    try daemon.start(through: journal.wrapper)
    let client = try daemon.client()
    var made: [String] = []
    for _ in 0..<60 {
      try client.send(String(repeating: "renew device\n", count: 100))
      for _ in 0..<100 { made.append(String(try client.answer()[0].split(separator: " ")[1])) }
    }
    let messages = try journal.values(of: "MESSAGE", upTo: "Entries are missing here")
    let shown = told(messages)
    #expect(shown == Array(made.prefix(shown.count)))
    #expect(messages.last?.hasSuffix(" \(made.count - shown.count).") == true, "\(messages.suffix(1))")
    let later = try renew(2)
    #expect(told(try journal.values(of: "MESSAGE", upTo: later[1])) == later)
    #expect(daemon.log == "")
  }

  @Test func `row 46: a blocked journal does not delay the stop`() throws {
    try daemon.start(through: journal.wrapper)
    // More entries than a datagram queue holds (net.unix.max_dgram_qlen).
    _ = try renew(600)
    kill(daemon.process.processIdentifier, SIGTERM)
    // A daemon that waited for the journal would be killed, which shows in the status.
    #expect(daemon.exitStatus() == 0)
  }

  @Test(arguments: ["refuses", "is gone"])
  func `row 46: while the journal is away, entries go to standard error`(how: String) throws {
    try daemon.start(through: journal.wrapper)
    journal.end()
    if how == "is gone" { try journal.remove() }
    let without = try renew(3)
    try daemon.waitForLog(without[2])
    #expect(told(daemon.log.components(separatedBy: "\n").map { String($0.dropFirst(11)) }) == without)
    if how == "refuses" { try journal.remove() }
    try journal.listen()
    let with = try renew(3)
    #expect(told(try journal.values(of: "MESSAGE", upTo: with[2])) == with)
    #expect(!daemon.log.contains(with[0]))
  }

  @Test func `row 51: a name that contains line ends is one field of one journal entry`() throws {
    let socket = "\(daemon.folder.path)/evil\nPRIORITY=0\r<3>\u{1b}[2J"
    try daemon.launch(["--socket", socket], through: journal.wrapper)
    while true {
      let fields = try journal.entry()
      let message = fields.first { $0.name == "MESSAGE" }?.value ?? ""
      #expect(!message.utf8.contains { $0 < 0x20 }, "\(message)")
      guard message.contains("evil") else { continue }
      #expect(message.contains(#"/evil\nPRIORITY=0\r<3>\u001b[2J."#), "\(message)")
      #expect(fields.map(\.name) == ["MESSAGE", "MESSAGE_ID", "PRIORITY", "SYSLOG_IDENTIFIER", "IDENTITYD_SOCKET"])
      #expect(fields[2].value == "5")
      #expect(fields[4].value.hasSuffix(#"/evil\nPRIORITY=0\r<3>\u001b[2J"#), "\(fields[4].value)")
      return
    }
  }
}
