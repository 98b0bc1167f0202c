import IdentityCore
import IdentityWire
import Testing

private func line(_ refusal: Refusal) -> String {
  var bytes: [UInt8] = []
  refusal.append(to: &bytes)
  return String(decoding: bytes, as: UTF8.self)
}

struct ErrorTextTests {
  @Test(
    arguments: [
      (.syntax(.noVerb), "syntax the line has no verb"),
      (.tooLong(limit: 98_304), "too-long a line has at most 98304 bytes, including its line feed"),
      (.unknownVerb("frob"), "unknown-verb unknown verb \"frob\"; 'help' lists the verbs"),
      (.badArgument(verb: "renew", .missingOperand("LEVEL")), "bad-argument renew: LEVEL is missing"),
      (
        .invalidUUID("x"),
        "invalid-uuid \"x\" is not a valid identifier; give a UUID that is neither all zeros nor all ones"
      ),
      (
        .denied(app: "user:1000", userID: 1_000, grant: "admin rights for 'seal'"),
        "denied user:1000 (uid 1000) lacks admin rights for 'seal'"
      ),
      (.unattested, "denied the kernel could not identify the client, which may have ended; connect again"),
      (
        .foreign,
        "denied the client's process or user has no ID in the daemon's namespaces; run the client in these namespaces"
      ),
      (
        .unprovenPlace(below: "run-1.scope"),
        "denied the client is in a control group below run-1.scope, where any name can be made; "
          + "run the client in a service, or its container in a scope of its own"
      ),
      (
        .noControlGroups,
        "denied no control groups are mounted on /sys/fs/cgroup where the daemon runs, so no client can be identified; "
          + "mount them ('identityctl check' shows the command)"
      ),
      (.orphaned, "denied the process that opened this connection has ended; connect again"),
      (.badArgument(verb: "backup", .missingAttribute("key")), "bad-argument backup: key= is missing"),
      (
        .badArgument(verb: "backup", .unexpectedWord(usage: "backup key=BASE64")),
        "bad-argument backup: unexpected word; usage: backup key=BASE64"
      ),
      (
        .badArgument(verb: "backup", .notBase64(name: "key")),
        "bad-argument backup: key is not Base64 (RFC 4648, section 4)"
      ),
      (.badArgument(verb: "item delete", .combination("no condition")), "bad-argument item delete: no condition"),
      (.notFound("the device is not in the list"), "not-found the device is not in the list"),
      (
        .exists("group g already has this item; use 'item put' to replace it"),
        "exists group g already has this item; use 'item put' to replace it"
      ),
      (.conflict("it was handed out already"), "conflict it was handed out already"),
      (.limit("that is all"), "limit that is all"),
      (.gone(since: 3, oldest: 44), "gone some events after 3 were deleted; use since=44 or later"),
      (.busy("too many"), "busy too many"), (.unavailable("sealed"), "unavailable sealed"),
      (.noSpace, "no-space the disk is full and nothing was changed; free space, then repeat the request"),
      (.readOnly("I/O error"), "read-only I/O error"),
      (.broken("no bytes"), "internal no bytes"),
    ] as [(Refusal, String)])
  func `a refusal is written as its code and a readable text`(refusal: Refusal, expected: String) {
    #expect(line(refusal) == "ERR \(expected)\n")
  }

  @Test(arguments: ["x\"y", "a\nb", String(repeating: "é", count: 500), "\u{1b}[2J", "\u{85}", "\u{9f}\r\u{7f}"])
  func `client text in an error stays one bounded line without control characters`(text: String) throws {
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
  func `an error text with a control character is written as a JSON string on one line`(
    refusal: Refusal, expected: String
  ) {
    #expect(line(refusal) == expected)
    guard case .error(let code, _)? = ReplyLine(Array(expected.utf8.dropLast())) else {
      Issue.record("\(expected) is not read as an error")
      return
    }
    #expect(code == Text(refusal.code.rawValue))
  }

  @Test func `a long word in place of a verb may be a secret and is not repeated`() {
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

  @Test func `a name that a client chooses does not make an error line grow`() throws {
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

struct ErrorCodeTests {
  @Test func `every code has its own exit status`() {
    #expect(Set(ErrorCode.allCases.map(\.exitStatus)).count == ErrorCode.allCases.count)
    #expect(ErrorCode.allCases.allSatisfy { (10...63).contains($0.exitStatus) })
  }
}
