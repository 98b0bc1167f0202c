import IdentityCore
import IdentityWire
import Testing

struct VersionVerbTests {
  @Test(
    arguments: [
      ("version report 1.2", .reportVersion(Release(version: "1.2"), app: nil)),
      (
        "VERSION Report \"1.2 beta\" BUILD=\"a b\" app=org.a",
        .reportVersion(Release(version: "1.2 beta", build: "a b"), app: "org.a")
      ),
      // An empty build means no build.
      ("version report 1 build=\"\"", .reportVersion(Release(version: "1"), app: nil)),
      ("version report \"a=b\"", .reportVersion(Release(version: "a=b"), app: nil)),
      ("version report é build=é", .reportVersion(Release(version: "é", build: "é"), app: nil)),
      ("version state", .versionState(.app(named: nil))), ("version state of=app", .versionState(.app(named: nil))),
      ("version state of=App app=org.a", .versionState(.app(named: "org.a"))),
      ("version state app=org.a", .versionState(.app(named: "org.a"))), ("version state of=os", .versionState(.system)),
      ("version history", .versionHistory(.app(named: nil))), ("version history OF=OS", .versionHistory(.system)),
      ("version history app=org.a of=app", .versionHistory(.app(named: "org.a"))),
      ("version claim \"first run\"", .claim(name: "first run", app: nil)),
      ("version claim n app=org.a", .claim(name: "n", app: "org.a")),
    ] as [(String, RegistryCommand)])
  func `requests for versions are parsed to commands`(line: String, expected: RegistryCommand) throws {
    #expect(try command(line, by: alice) == .registry(expected))
  }

  @Test(
    arguments: [
      ("version compare 1.2 1.10", "1.2", "1.10", .numeric), ("version compare 1 2 order=numeric", "1", "2", .numeric),
      ("Version COMPARE order=LINUX \"1~a\" 2", "1~a", "2", .linux),
      ("version compare \"\" \"a=b\"", "", "a=b", .numeric), ("version compare 1 2 order=auto", "1", "2", .auto),
      ("version compare 1 2 order=semver", "1", "2", .semver), ("version compare 1 2 order=debian", "1", "2", .debian),
    ] as [(String, Text, Text, VersionOrder)])
  func `version compare is parsed with its order`(line: String, left: Text, right: Text, order: VersionOrder) throws {
    #expect(try command(line, by: alice) == .local(.compare(Release(version: left), Release(version: right), order)))
  }

  @Test(
    arguments: [
      ("1 1.0", "equal"), ("1 1.0 build=7", "different"), ("1 1.0 build2=7", "different"),
      ("1 1.0 build=7 build2=7", "equal"), ("1 1.0 build=7 build2=8", "different"), ("1 2 build=8 build2=7", "less"),
    ])
  func `equal versions with other builds are different`(words: String, expected: String) throws {
    guard case .local(.compare(let left, let right, let order)) = try command("version compare \(words)", by: alice)
    else {
      Issue.record("it was not read as a comparison")
      return
    }
    var bytes: [UInt8] = []
    Reply.compare(left, right, order).append(to: &bytes)
    #expect(String(decoding: bytes, as: UTF8.self) == "OK \(expected)\n")
  }

  @Test(
    arguments: [
      ("1.2", "1.10", .numeric, "OK less\n"), ("2.0", "2.00.0", .numeric, "OK equal\n"),
      ("1.2", "1.2~rc1", .linux, "OK greater\n"), ("1.2", "1.2~rc1", .numeric, "OK equal\n"),
    ] as [(Text, Text, VersionOrder, String)])
  func `the result of a comparison is one word`(left: Text, right: Text, order: VersionOrder, expected: String) {
    var bytes: [UInt8] = []
    Reply.compare(Release(version: left), Release(version: right), order).append(to: &bytes)
    #expect(String(decoding: bytes, as: UTF8.self) == expected)
  }

  @Test(arguments: ["report", "claim"]) func `a version or claim name has 1 to 255 bytes`(verb: String) throws {
    for text in ["x", String(repeating: "x", count: 255), String(repeating: "é", count: 127)] {
      #expect(refused("version \(verb) \(text)") == nil)
    }
    for text in ["\"\"", String(repeating: "x", count: 256), String(repeating: "é", count: 128)] {
      let refusal = try #require(refused("version \(verb) \(text)"))
      #expect(refusal.code == .badArgument)
      #expect(refusal.text.hasSuffix("; allowed: 1 to 255 bytes"))
      #expect(refusal.text.utf8.count < 200)
    }
  }

  @Test func `a build has at most 255 bytes`() throws {
    #expect(refused("version report 1 build=\(String(repeating: "b", count: 255))") == nil)
    let refusal = try #require(refused("version report 1 build=\(String(repeating: "b", count: 256))"))
    #expect(refusal.text.hasPrefix("version report: build cannot be \"bbb"))
    #expect(refusal.text.hasSuffix("; allowed: 1 to 255 bytes"))
  }

  @Test func `row 25: versions of any length are compared`() throws {
    let long = String(repeating: "9", count: 30_000)
    guard case .local(.compare(let left, let right, .numeric)) = try command("version compare \(long) \(long)0") else {
      Issue.record("it was not read as a comparison")
      return
    }
    #expect(VersionOrder.numeric.compare(left.version, right.version) == .less)
  }

  @Test func `an event about a version is one line, whatever the version contains`() {
    var registry = Registry()
    registry.apply(.appInstalled("org.a", App(installed: Timestamp(milliseconds: 0))))
    let release = Release(version: "1.0 \"x\"\nEVENT 9 x", build: "a=b")
    let report = VersionReport(
      number: 1, session: UUID(high: 1, low: 1), release: release, state: .installed, previous: nil)
    let event = registry.record(
      .version(.reported(.app("org.a"), report)), at: Timestamp(milliseconds: 1_795_250_352_345)
    ).event
    var bytes: [UInt8] = []
    event?.append(to: &bytes)
    #expect(
      String(decoding: bytes, as: UTF8.self)
        == "EVENT 1 version installed of=app app=org.a version=\"1.0 \\\"x\\\"\\nEVENT 9 x\" build=a=b time=2026-11-21T08:39:12.345Z\n"
    )
  }
}
