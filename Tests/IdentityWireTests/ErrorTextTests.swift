import IdentityCore
import IdentityWire
import Testing

private func line(_ refusal: Refusal) -> String {
  var bytes: [UInt8] = []
  refusal.append(to: &bytes)
  return String(decoding: bytes, as: UTF8.self)
}

@Suite struct ErrorTextTests {
  @Test(
    arguments: [
      (.syntax(.noVerb), "syntax the line has no verb"),
      (.tooLong(limit: 65_536), "too-long a line is at most 65536 bytes, its end included"),
      (.unknownVerb("frob"), "unknown-verb \"frob\" is no verb; 'help' lists them"),
      (.badArgument(verb: "renew", .missingOperand("LEVEL")), "bad-argument renew: LEVEL is missing"),
      (
        .invalidUUID("x"),
        "invalid-uuid \"x\" cannot be an identifier: a UUID other than all zeros and all ones can"
      ),
      (
        .denied(app: "user:1000", userID: 1_000, grant: "admin rights, for 'seal'"),
        "denied user:1000 (uid 1000) lacks admin rights, for 'seal'"
      ),
      (.unattested, "denied the peer was gone before the kernel could say who it is"),
      (.foreign, "denied the peer is in a namespace that cannot be seen from the daemon's"),
      (.orphaned, "denied the process that connected has ended"),
      (.badArgument(verb: "backup", .missingAttribute("key")), "bad-argument backup: key= is missing"),
      (
        .badArgument(verb: "backup", .unexpectedWord(usage: "backup key=BASE64")),
        "bad-argument backup: there is a word that does not belong there; usage: backup key=BASE64"
      ),
      (
        .badArgument(verb: "backup", .notBase64(name: "key")),
        "bad-argument backup: key is not Base64 (RFC 4648, section 4)"
      ),
      (.badArgument(verb: "item delete", .combination("no condition")), "bad-argument item delete: no condition"),
      (.notFound("no such device is listed"), "not-found no such device is listed"),
      (.exists("group g has such an item"), "exists group g has such an item"),
      (.conflict("it was handed out already"), "conflict it was handed out already"),
      (.limit("that is all"), "limit that is all"),
      (.gone(since: 3, oldest: 44), "gone events after 3 are not all kept; those after 44 are"),
      (.busy("too many"), "busy too many"), (.unavailable("sealed"), "unavailable sealed"),
      (.noSpace, "no-space the disk is full; nothing was changed"), (.readOnly("I/O error"), "read-only I/O error"),
      (.broken("no bytes"), "internal no bytes"),
    ] as [(Refusal, String)])
  func `a refusal is its code and a text for people`(refusal: Refusal, expected: String) {
    #expect(line(refusal) == "ERR \(expected)\n")
  }

  @Test(arguments: ["x\"y", "a\nb", String(repeating: "é", count: 500), "\u{1b}[2J", "\u{85}", "\u{9f}\r\u{7f}"])
  func `a client's own words in an error stay one line, bounded and without control characters`(text: String) throws {
    for refusal in [
      .unknownVerb(Text(text)), .invalidUUID(Text(text)),
      .badArgument(verb: "get", .notAllowed(name: "LEVEL", value: Text(text), allowed: "device")),
      .badArgument(verb: "get", .unexpectedOperand(Text(text))),
    ] as [Refusal] {
      let line = line(refusal)
      #expect(line.utf8.count < 300)
      #expect(line.unicodeScalars.dropLast().allSatisfy { $0.properties.generalCategory != .control })
      #expect(line.last == "\n")
    }
  }

  @Test(
    arguments: [
      (.notFound("a\nOK is not installed"), "ERR not-found \"a\\nOK is not installed\"\n"),
      (.conflict("\u{1b}[2J\r\""), "ERR conflict \"\\u001b[2J\\r\\\"\"\n"),
      (.limit("\u{85}"), "ERR limit \"\\u0085\"\n"),
      (
        .denied(app: "unit:a\nb.service", userID: 1, grant: "rights"),
        "ERR denied \"unit:a\\nb.service (uid 1) lacks rights\"\n"
      ), (.notFound("say \"é\" \\"), "ERR not-found say \"é\" \\\n"),
    ] as [(Refusal, String)])
  func `a name in a text that has a control character is written as a JSON string on one line`(
    refusal: Refusal, expected: String
  ) {
    #expect(line(refusal) == expected)
    guard case .error(let code, _)? = ReplyLine(Array(expected.utf8.dropLast())) else {
      Issue.record("\(expected) is not read as an error")
      return
    }
    #expect(code == Text(refusal.code.rawValue))
  }

  @Test func `what may be a secret in a verb's place is not repeated`() {
    let word = String(repeating: "x", count: Bound.shownWordLength)
    #expect(refused(word) == .unknownVerb(Text(word)))
    #expect(refused("\(word)y") == .unknownVerb("…"))
    #expect(refused("\(word)y item put data=\(word)") == .unknownVerb("…"))
    for verb in ["get", "migrate"] {
      guard case .badArgument(verb, .notAllowed(name: "LEVEL", value: "…", _))? = refused("\(verb) \(word)y") else {
        Issue.record("\(verb)")
        continue
      }
    }
    #expect(VerbTable.verbs.allSatisfy { $0.words.utf8.count <= Bound.shownWordLength })
  }

  @Test func `a name that a client makes up does not make an error line grow`() throws {
    let name = String(repeating: "\\u0001", count: 10_000)
    let surroundings = Surroundings(
      now: { Timestamp(milliseconds: 0) }, session: { (_) throws(Refusal) in throw .unavailable("no session") })
    var bytes: [UInt8] = []
    if let refusal = refused("app forget \"\(name)\"") {
      refusal.append(to: &bytes)
    } else if case .registry(let asked) = try command("app forget \"\(name)\"") {
      do throws(Refusal) {
        _ = try Registry().answer(asked, for: root, in: surroundings)
      } catch {
        error.append(to: &bytes)
      }
    }
    #expect(!bytes.isEmpty && bytes.count < 1_024)
  }
}

@Suite struct ErrorCodeTests {
  @Test func `every code has an exit status of its own`() {
    #expect(Set(ErrorCode.allCases.map(\.exitStatus)).count == ErrorCode.allCases.count)
    #expect(ErrorCode.allCases.allSatisfy { (10...63).contains($0.exitStatus) })
  }
}
