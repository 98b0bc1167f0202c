import FleetWire
import Testing

@testable import FleetSeal

struct JoinCodeTests {
  @Test func `a code is read as it is shown, and as people type it`() throws {
    for _ in 0..<100 {
      let code = try #require(JoinCode.random())
      let text = "\(code)"
      #expect(text.count == 19)
      #expect(try JoinCode(parsing: text) == code)
      let typed = text.lowercased().replacing("-", with: " ").replacing("0", with: "o").replacing("1", with: "l")
      #expect(try JoinCode(parsing: typed) == code)
    }
  }

  @Test func `a mistyped letter is noticed nearly always`() throws {
    var unnoticed = 0
    for _ in 0..<1_000 {
      var letters = Array("\(try #require(JoinCode.random()))".replacing("-", with: ""))
      letters[3] = letters[3] == "7" ? "8" : "7"
      if (try? JoinCode(parsing: String(letters))) != nil { unnoticed += 1 }
    }
    // One in 32 on average.
    #expect(unnoticed < 100)
  }

  @Test func `other texts are no codes`() {
    #expect(throws: JoinCode.Fault.length) { try JoinCode(parsing: "") }
    #expect(throws: JoinCode.Fault.length) { try JoinCode(parsing: "7KQ2-M4XD-9TRW-A3Z") }
    #expect(throws: JoinCode.Fault.length) { try JoinCode(parsing: "7KQ2-M4XD-9TRW-A3ZFF") }
    // Nothing is collected beyond the length of a code.
    #expect(throws: JoinCode.Fault.length) { try JoinCode(parsing: "7KQ2-M4XD-9TRW-A3ZFFU") }
    #expect(throws: JoinCode.Fault.character) { try JoinCode(parsing: "7KQ2-M4XD-9TRW-A3ZU") }
    #expect(throws: JoinCode.Fault.character) { try JoinCode(parsing: "7KQ2_M4XD-9TRW-A3ZF") }
  }

  @Test func `a meeting can be handed over as bytes`() throws {
    let meeting = try #require(JoinCode.Meeting.random())
    var bytes = meeting.copy()
    #expect(bytes.count == JoinCode.Meeting.length)
    let other = try #require(JoinCode.Meeting(consuming: &bytes))
    #expect(other.rendezvous == meeting.rendezvous && other.key.key.copy() == meeting.key.key.copy())
    #expect(bytes.allSatisfy { $0 == 0 }, "the bytes are wiped")
    #expect(JoinCode.Meeting.random()?.rendezvous != meeting.rendezvous)
    var short = [UInt8](repeating: 7, count: JoinCode.Meeting.length - 1)
    #expect(JoinCode.Meeting(consuming: &short) == nil)
  }

  @Test func `two codes meet at different topics with different keys`() throws {
    let first = try #require(JoinCode.random()?.meeting())
    let second = try #require(JoinCode.random()?.meeting())
    #expect(first.rendezvous != second.rendezvous)
    #expect(first.key.key.copy() != second.key.key.copy())
    #expect(first.key.number == 0)
  }
}
