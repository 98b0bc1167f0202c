import IdentityCore
import IdentityWire
import Testing

@testable import IdentityClient

struct AnswerQueueTests {
  /// Returns the tickets that these lines answer, each with the first word and the number of rows of its answer.
  private func answers(_ queue: inout AnswerQueue, _ lines: [String]) throws -> [String] {
    try lines.compactMap { text in
      var line = Array(text.utf8)
      guard case .answer(let ticket, let answer) = try queue.consume(&line) else { return nil }
      #expect(line.allSatisfy { $0 == 0 }, "the line is left in memory")
      guard case .ok(let content) = answer.final else { return "\(ticket) error" }
      return "\(ticket) \(content.words.first?.description ?? "-") \(answer.rows.count)"
    }
  }

  @Test func `answers belong to the requests in order, with the rows before each`() throws {
    var queue = AnswerQueue()
    for ticket in 1...4 { queue.expect(UInt64(ticket), takesSecret: false) }
    let lines = ["OK a", "* x", "* y", "OK b", "EVENT 7 item added", "ERR denied no", "OK"]
    #expect(try answers(&queue, lines) == ["1 a 0", "2 b 2", "3 error", "4 - 0"])
    #expect(queue.count == 0)
  }

  @Test func `requests without an answer at the end of the connection are returned in order`() throws {
    var queue = AnswerQueue()
    for ticket in 1...3 { queue.expect(UInt64(ticket), takesSecret: false) }
    #expect(try answers(&queue, ["OK a", "* x"]) == ["1 a 0"])
    let left = [queue.end(), queue.end()]
    #expect(left == [[2, 3], []])
    queue.expect(9, takesSecret: false)
    #expect(try answers(&queue, ["OK b"]) == ["9 b 0"], "a row of an answer that broke off is no one's")
  }

  @Test func `a busy daemon is recognised by its last line`() throws {
    var queue = AnswerQueue()
    queue.expect(1, takesSecret: false)
    #expect(try answers(&queue, ["ERR busy no room"]) == ["1 error"])
    #expect(queue.busyText == "no room")
    queue.expect(2, takesSecret: false)
    #expect(try answers(&queue, ["OK"]) == ["2 - 0"])
    #expect(queue.busyText == nil)
    var line = Array("ERR busy later".utf8)
    guard case .farewell = try queue.consume(&line) else {
      Issue.record("nobody asked")
      return
    }
    #expect(queue.busyText == "later")
  }

  @Test(arguments: ["nonsense", "", "OK \"", "* a"])
  func `a line that is not the protocol, or a row without a request, is malformed`(text: String) {
    var queue = AnswerQueue()
    #expect(throws: DaemonConnection.Failure.self) {
      var line = Array(text.utf8)
      _ = try queue.consume(&line)
    }
  }

  @Test(arguments: ["OK data=aHVudGVyMg==\"", "OK data=aHVudGVyMg== \u{1}", "aHVudGVyMg=="])
  func `an error about a malformed line does not repeat its secret`(text: String) throws {
    var queue = AnswerQueue()
    queue.expect(1, takesSecret: true)
    var line = Array(text.utf8)
    do throws(DaemonConnection.Failure) {
      _ = try queue.consume(&line)
      Issue.record("it was taken for an answer")
    } catch {
      #expect(!"\(error) \(IdentityError(error))".contains("aHVudGVy"))
    }
  }

  @Test(arguments: [
    ("OK data=aHVudGVyMg== service=mail label=\"a data=b\"", "hunter2"),
    ("OK label=\"a data=b\" data=aHVudGVyMg==", "hunter2"),
    ("OK DATA=aHVudGVyMg==", nil), ("OK data=\"\" service=mail", ""), ("OK data=\"aHVudGVyMg==\"", "hunter2"),
    ("OK data=aHVudGVyMg= service=mail", nil), ("OK label=data=aHVudGVyMg==", nil), ("OK data=a\"", nil),
  ])
  func `a secret is taken out of the line before anything else reads it`(text: String, secret: String?) {
    var line = Array(text.utf8)
    let found = SecretField.take(from: &line)
    let bytes = found?.withBytes { bytes in bytes.indices.map { bytes[$0] } }
    #expect(bytes.map { String(decoding: $0, as: UTF8.self) } == secret)
    if secret?.isEmpty == false { #expect(!String(decoding: line, as: UTF8.self).contains("aHVudGVyMg")) }
  }
}
