import Foundation
import IdentityCore
import IdentityWire
import LinuxSystem
import TestSupport
import Testing

@testable import IdentityClient

/// Answers whose rows are handed to a closure as they arrive.
struct LongAnswerTests {
  private struct Enough: Error {}

  private let path = temporaryPath("identity-client-\(UUID().uuidString.prefix(13))")

  /// Starts a fake daemon for one connection. It waits for a request, then sends the parts. Before each part except the
  /// first it waits for `isWanted`.
  private func play(_ parts: [String], isWanted: DispatchSemaphore? = nil) throws {
    let listener = try UnixSocket.listen(at: path, mode: 0o700, backlog: 5).release()
    let path = path
    Thread.detachNewThread {
      let listener = Descriptor(adopting: listener)
      _ = try? TimedWait.wait(for: listener.number, until: nil)
      guard let socket = (try? UnixSocket.accept(on: listener)) ?? nil else { return }
      UnixSocket.remove(path, ifStill: UnixSocket.identity(of: path))
      _ = try? TimedWait.wait(for: socket.number, until: nil)
      var bytes = [UInt8](repeating: 0, count: 1_024)
      _ = try? socket.receive(into: &bytes)
      for (place, part) in parts.enumerated() {
        if place > 0 { isWanted?.wait() }
        try? socket.sendAll(Array(part.utf8))
      }
    }
  }

  private let request = RequestLine(words: ["backup"])

  @Test func `a row is handed on before the next has arrived`() throws {
    let isWanted = DispatchSemaphore(value: 0)
    try play(["* a\n", "* b x=1\n", "OK 2\n"], isWanted: isWanted)
    var connection = try DaemonConnection(to: DaemonSocket(path))
    var rows: [ReplyLine.Content] = []
    let final = try connection.ask(request) { row in
      rows.append(row)
      isWanted.signal()
    }
    #expect(rows.map(\.words) == [["a"], ["b"]])
    #expect(rows.last?.attributes.map(\.value) == ["1"])
    #expect(final == ReplyLine(Array("OK 2".utf8)))
  }

  @Test func `requests that are sent together are answered in order`() throws {
    try play(["OK 1\n* row\nOK", " 2\nEVENT 7 token made\nERR conflict taken\n"])
    var connection = try DaemonConnection(to: DaemonSocket(path))
    let answers = try connection.ask(
      together: [request, request, request], Patience(until: Clock.monotonicMicroseconds + 120_000_000))
    #expect(
      answers == [
        ReplyLine(Array("OK 1".utf8)), ReplyLine(Array("OK 2".utf8)), .error(code: "conflict", text: "taken"),
      ])
    #expect(try connection.nextEvent(.endless).sequence == 7)
  }

  @Test func `an error is the final line, even after rows`() throws {
    try play(["* a\nERR internal broken\n"])
    var connection = try DaemonConnection(to: DaemonSocket(path))
    var count = 0
    let final = try connection.ask(request) { _ in count += 1 }
    #expect(final == .error(code: "internal", text: "broken"))
    #expect(count == 1)
  }

  @Test func `events between the rows are kept for later`() throws {
    try play(["EVENT 4 a b\n* a\nEVENT 5 a b\nOK 1\n"])
    var connection = try DaemonConnection(to: DaemonSocket(path))
    _ = try connection.ask(request) { _ in }
    #expect(try connection.nextEvent(.endless).sequence == 4)
    #expect(try connection.nextEvent(.endless).sequence == 5)
  }

  @Test func `an error of the closure ends the answer`() throws {
    try play(["* a\n* b\nOK 2\n"])
    var connection = try DaemonConnection(to: DaemonSocket(path))
    var count = 0
    #expect(throws: Enough.self) {
      _ = try connection.ask(request) { _ in
        count += 1
        throw Enough()
      }
    }
    #expect(count == 1)
  }

  @Test(
    arguments: [
      ("* a\n", .closed), ("* a\nOK", .closed), ("* a\nHELLO\nOK 1\n", .malformed("HELLO")),
    ] as [(String, DaemonConnection.Failure)])
  func `an incomplete or malformed answer is a failure`(answer: String, failure: DaemonConnection.Failure) throws {
    try play([answer])
    var connection = try DaemonConnection(to: DaemonSocket(path))
    #expect(throws: failure) { _ = try connection.ask(request) { _ in } }
  }

  @Test func `an error shows only the beginning of a malformed line, with escapes`() {
    let line = "* data=\u{1b}[2J" + String(repeating: "x", count: 100)
    let text = "\(DaemonConnection.Failure.malformed(line))"
    #expect(text.hasSuffix(": \"* data=\\u001b[2J\(String(repeating: "x", count: 53))\"…"), "\(text)")
  }
}
