import IdentityCore
import LinuxSystem
import Testing

@testable import IdentityServer

struct KnownAnswerTests {
  private let known = KnownAnswers()
  private let alice = Peer(userID: 1_000, groupID: 1_000, processID: 5, isAdmin: false)
  private let root = Peer(userID: 0, groupID: 0, processID: 5, isAdmin: true)

  /// Returns the answers, and the number of bytes of the requests answered.
  private func answers(
    _ requests: String, of peer: Peer, atMost limit: Int = 100
  ) -> (text: String, used: Int) {
    let number = known.number(of: peer)
    let bytes = Array(requests.utf8)
    let (used, length, _) = known.answer(bytes.span, of: number, atMost: limit)
    let text = known.output.withBytes(first: length) { bytes in bytes.indices.map { bytes[$0] } }
    return (String(decoding: text, as: UTF8.self), used)
  }

  private func keep(_ line: String, of peer: Peer, _ answer: String) {
    let bytes = Array(line.utf8)
    known.keep(bytes.span, verb: 0, of: known.number(of: peer), Array("before\n\(answer)".utf8), from: 7)
  }

  @Test func `requests are answered up to the first one that is unknown`() {
    #expect(answers("get device\n", of: alice) == ("", 0))
    keep("get device", of: alice, "OK 1\n")
    keep("ping", of: alice, "OK\n")
    #expect(answers("get device\nping\r\nget device\nget boot\nping\n", of: alice) == ("OK 1\nOK\nOK 1\n", 28))
    #expect(answers("get device\nget device", of: alice) == ("OK 1\n", 11), "a line that is not at its end")
    #expect(answers("get device\n\nping\n", of: alice) == ("OK 1\n", 11), "an empty line is no question")
    #expect(answers("ping\nping\nping\n", of: alice, atMost: 2) == ("OK\nOK\n", 10))
  }

  @Test func `each answer is counted for its verb`() {
    keep("get device", of: alice, "OK 1\n")
    _ = answers("get device\nget device\nfrob\n", of: alice)
    let line = Array("get device".utf8)
    known.keep(line.span, verb: 7, of: known.number(of: root), Array("OK 1\n".utf8), from: 0)
    _ = answers("get device\n", of: root)
    #expect([known.count(ofVerb: 0), known.count(ofVerb: 7), known.count(ofVerb: 1)] == [2, 1, 0])
  }

  @Test func `another peer is not answered, whatever it has in common`() {
    keep("get device", of: root, "OK 1\n")
    #expect(answers("get device\n", of: alice) == ("", 0))
    keep("get device", of: alice, "ERR denied\n")
    #expect(answers("get device\n", of: alice).text == "ERR denied\n")
    // Both peers have the same process ID, so they share a slot. A peer that takes over the slot gets a new number and
    // none of the answers kept there.
    #expect(known.number(of: root) != known.number(of: alice))
    let session = Peer(userID: 1_000, groupID: 1_000, processID: 5, session: .process(5, start: 1), isAdmin: false)
    #expect(answers("get device\n", of: session) == ("", 0))
  }

  @Test func `a change forgets all answers`() {
    keep("get device", of: alice, "OK 1\n")
    known.forgetAll()
    #expect(answers("get device\n", of: alice) == ("", 0))
    keep("get device", of: alice, "OK 2\n")
    #expect(answers("get device\n", of: alice).text == "OK 2\n")
  }

  @Test func `long requests and answers are not kept, and answers never exceed the output`() {
    let long = String(repeating: "a", count: 300)
    keep(long, of: alice, "OK\n")
    keep("a", of: alice, "OK \(long)\n")
    #expect(answers("\(long)\n", of: alice) == ("", 0))
    #expect(answers("a\n", of: alice) == ("", 0))
    let answer = "OK \(String(repeating: "b", count: 240))\n"
    keep("a", of: alice, answer)
    let (text, used) = answers(String(repeating: "a\n", count: 1_000), of: alice, atMost: 1_000)
    #expect(used == text.utf8.count / answer.utf8.count * 2)
    #expect(used > 0 && used < 2_000)
    #expect(text == String(repeating: answer, count: used / 2))
  }

  @Test func `among many requests of many peers, none gets the answer of another`() {
    var generator = SystemRandomNumberGenerator()
    for _ in 0..<20_000 {
      let peer = Peer(
        userID: .random(in: 0..<3, using: &generator), groupID: 0, processID: .random(in: 1..<200, using: &generator),
        isAdmin: false)
      let line = "get key \(Int.random(in: 0..<20, using: &generator))"
      let answer = "OK \(peer.userID) \(peer.processID) \(line)\n"
      let text = answers("\(line)\n", of: peer).text
      #expect(text.isEmpty || text == answer)
      if text.isEmpty { keep(line, of: peer, answer) }
    }
  }
}

struct ConnectionQueueTests {
  @Test func `connections leave the queue in the order in which they entered`() {
    let queue = ConnectionQueue()
    var generator = SystemRandomNumberGenerator()
    var (next, first) = (0, 0)
    for _ in 0..<10_000 {
      for _ in 0..<Int.random(in: 0..<5, using: &generator) {
        queue.append(ConnectionToken(slot: next, generation: 0))
        next += 1
      }
      for _ in 0..<Int.random(in: 0..<5, using: &generator) {
        guard let token = queue.popFirst() else {
          #expect(first == next)
          break
        }
        #expect(token.slot == first)
        first += 1
      }
      #expect(queue.count == next - first)
      #expect(queue.isEmpty == (next == first))
    }
  }
}
