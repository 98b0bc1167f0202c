import IdentityCore
import IdentityWire
import Testing

private let secret = "bk3RNwTe3H0:CI2k_HHwgIpoDKCIZvvD"

struct TokenVerbTests {
  private static func put(
    _ value: Text, environment: Text? = nil, topic: Text? = nil, app: Text? = nil
  ) -> RegistryCommand {
    .putToken(TokenRegistration(provider: "fcm", value: value, environment: environment, topic: topic), app: app)
  }

  @Test(
    arguments: [
      ("token put fcm t", put("t")),
      (
        "TOKEN Put fcm T ENVIRONMENT=E topic=\"a b\" app=org.a",
        put("T", environment: "E", topic: "a b", app: "org.a")
      ),
      ("token put fcm t environment=\"\" topic=\"\"", put("t")),
      // Only the provider knows which tokens are valid.
      ("token put fcm \"a=b\"", put("a=b")), ("token put fcm a:b=c/+==", put("a:b=c/+==")),
      ("token put fcm \"two words\\n\"", put("two words\n")), ("token put fcm \"\\u00e9\"", put("é")),
      ("token put fcm 日本語🔑", put("日本語🔑")), ("token put fcm *", put("*")),
      ("token get fcm", .getToken(provider: "fcm", app: nil)),
      ("token get \"f c m\" app=org.a", .getToken(provider: "f c m", app: "org.a")),
      ("token get fcm app=*", .getToken(provider: "fcm", app: "*")),
      ("token list", .listTokens(.app(named: nil), stale: nil)),
      ("token list app=org.a", .listTokens(.app(named: "org.a"), stale: nil)),
      ("token list app=*", .listTokens(.all, stale: nil)),
      ("token list app=\"*\" stale=0", .listTokens(.all, stale: 0)),
      ("token list app=* limit=9", .listTokens(.page(after: nil, limit: 9), stale: nil)),
      ("token list app=* after=org.a", .listTokens(.page(after: "org.a", limit: Bound.tokens), stale: nil)),
      ("token list stale=2592000", .listTokens(.app(named: nil), stale: 2_592_000)),
      ("token list stale=3155760000", .listTokens(.app(named: nil), stale: 3_155_760_000)),
      ("token invalidate fcm t", .invalidateToken(provider: "fcm", value: "t", app: nil)),
      ("token invalidate fcm t app=org.a", .invalidateToken(provider: "fcm", value: "t", app: "org.a")),
      ("token delete fcm", .deleteToken(provider: "fcm", app: nil)),
      ("token delete fcm app=org.a", .deleteToken(provider: "fcm", app: "org.a")),
    ] as [(String, RegistryCommand)])
  func `requests for tokens are parsed to commands`(line: String, expected: RegistryCommand) throws {
    #expect(try command(line, by: alice) == .registry(expected))
  }

  @Test(arguments: ["token put fcm", "token invalidate fcm"])
  func `a token has 1 to 4,096 bytes`(line: String) throws {
    for text in ["t", String(repeating: "t", count: 4_096), String(repeating: "é", count: 2_048)] {
      #expect(refused("\(line) \(text)") == nil)
    }
    for text in [String(repeating: "t", count: 4_097), String(repeating: "é", count: 2_048) + "t"] {
      #expect(refused("\(line) \(text)") == .limit("a token has at most 4096 bytes"))
    }
    let refusal = try #require(refused("\(line) \"\""))
    #expect(refusal.code == .badArgument)
    #expect(refusal.text.hasSuffix(": TOKEN is empty"))
  }

  // An escape counts as the character that it stands for.
  @Test func `the longest token can be written in escapes`() throws {
    let escapes = String(repeating: "\\u0001", count: 4_096)
    #expect(
      try command("token put fcm \"\(escapes)\"")
        == .registry(Self.put(Text(String(repeating: "\u{1}", count: 4_096)))))
  }

  /// Requests with the token in places where a client may put it by mistake.
  private static let mistakes: [String] = {
    let long = String(repeating: secret, count: 9)
    var lines: [String] = []
    for token in [secret, long, String(repeating: secret, count: 200)] {
      for verb in ["put", "invalidate"] {
        lines += [
          "\(verb) \(token)", "\(verb) fcm t \(token)", "\(verb) fcm \(token) \(token)", "\(verb) \(token) fcm t",
          "\(verb) fcm \(token) x=y", "\(verb) fcm \"\" \(token)", "\(verb) fcm t token=\(token)",
          "\(verb) fcm x\(token.filter(\.isLetter))=\(token) t", "\(verb) fcm \(token) app=\(token) app=\(token)",
        ]
      }
      lines += [
        "get fcm \(token)", "delete fcm \(token)", "putt fcm \(token)", "\(token) fcm", "get fcm token=\(token)",
      ]
    }
    // The only fault of these requests is the length of a value.
    for verb in ["put", "invalidate"] { lines += ["\(verb) \(long) fcm", "\(verb) \(long) \(long)"] }
    lines += ["put fcm t environment=\(long)", "put fcm t topic=\(long)", "get \(long)", "delete \(long)"]
    lines.append("put fcm \(String(repeating: secret, count: 200))")
    return lines
  }()

  @Test(arguments: mistakes) func `no error text repeats a token`(line: String) throws {
    let refusal = try #require(refused("token \(line)"))
    var bytes: [UInt8] = []
    refusal.append(to: &bytes)
    let text = String(decoding: bytes, as: UTF8.self)
    for length in [8, 16] { #expect(!text.contains(secret.prefix(length))) }
    // The name must not be repeated either, if the token was parsed as an attribute.
    #expect(!text.contains(secret.filter(\.isLetter).prefix(8)))
    #expect(text.utf8.count < 200)
  }

  // MARK: Answers

  private static func token(_ value: Text) -> Token {
    let time = Timestamp(milliseconds: 1_795_250_352_345)
    return Token(
      number: 1, app: "org.a", provider: "f c", value: value, environment: "a=b", topic: nil,
      device: UUID(high: 1, low: 2), isValid: true, created: time, changed: time, confirmed: time, fingerprint: "3f2a")
  }

  @Test(
    arguments: [
      ("bk3:x", "bk3:x"), ("a=b", "\"a=b\""), ("two words", "\"two words\""), ("é\n", "\"é\\n\""), ("日本🔑", "日本🔑"),
      ("a:b==", "a:b=="),
    ] as [(Text, String)])
  func `a reply has the token as one word that is read back unchanged`(value: Text, written: String) throws {
    var registry = Registry()
    registry.apply(.appInstalled("org.a", App(installed: Timestamp(milliseconds: 0))))
    registry.apply(.tokenStored(Self.token(value), .created))
    let surroundings = Surroundings(
      now: { Timestamp(milliseconds: 0) }, session: { (_) throws(Refusal) in throw .unavailable("none") })
    let reply = try registry.answer(.getToken(provider: "f c", app: "org.a"), for: root, in: surroundings)
    var bytes: [UInt8] = []
    reply?.append(to: &bytes)
    let times = ["created", "changed", "confirmed"].map { "\($0)=2026-11-21T08:39:12.345Z" }.joined(separator: " ")
    #expect(
      String(decoding: bytes, as: UTF8.self)
        == "OK \(written) provider=\"f c\" app=org.a device=00000000-0000-0001-0000-000000000002 environment=a=b state=valid \(times)\n"
    )
    guard case .ok(let content)? = ReplyLine(bytes.dropLast()) else {
      Issue.record("it was not read as an answer")
      return
    }
    #expect(content.words == [value])
  }

  @Test(
    arguments: [
      (.created, "created", ""), (.replaced, "replaced", ""), (.invalidated, "invalidated", ""),
      (
        .rehomed(from: UUID(high: 3, low: 4)), "rehomed", " previous-device=00000000-0000-0003-0000-000000000004"
      ),
    ] as [(TokenChange, String, String)])
  func `an event names the app and the change, but not the token`(change: TokenChange, name: String, more: String) {
    let event = Registry().record(
      .tokenStored(Self.token(Text(secret)), change), at: Timestamp(milliseconds: 1_795_250_352_345)
    ).event
    var bytes: [UInt8] = []
    event?.append(to: &bytes)
    #expect(
      String(decoding: bytes, as: UTF8.self)
        == "EVENT 1 token \(name) app=org.a provider=\"f c\" device=00000000-0000-0001-0000-000000000002\(more) fingerprint=3f2a time=2026-11-21T08:39:12.345Z\n"
    )
  }

  @Test func `a confirmation causes no event`() {
    #expect(Registry().record(.tokenStored(Self.token("t"), .confirmed), at: Timestamp(milliseconds: 0)).event == nil)
  }
}
