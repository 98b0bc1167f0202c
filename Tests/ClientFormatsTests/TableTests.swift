import IdentityClient
import IdentityCore
import IdentityWire
import Testing

@testable import ClientFormats

/// The text of answers on a terminal.
struct TableTests {
  private static let now = Timestamp(parsing: "2026-11-21T12:00:00.000Z") ?? Timestamp(milliseconds: 0)
  private static let uuid = "557e5958-d390-4cbf-b928-2a2b19a1399a"

  private func text(
    _ request: String, columns: Int? = 80, isColoured: Bool = false, isFull: Bool = false, _ lines: String...
  ) throws -> String {
    let contents = try lines.map { line in
      let parsed = try #require(ReplyLine(Array(line.utf8)))
      return parsed
    }
    let rows = contents.compactMap { if case .row(let content) = $0 { content } else { nil } }
    let answer = DaemonConnection.Answer(rows: rows, final: try #require(contents.last))
    let screen = Screen(columns: columns, isColoured: isColoured, isFull: isFull, now: Self.now)
    return TextOutput(.hyphen, .screen(screen)).text(answer, to: request.split(separator: " ").map(String.init))
  }

  @Test func `rows are aligned under the names of their values`() throws {
    let shown = try text(
      "devices", "* \(Self.uuid) self=yes name=laptop seen=2026-11-21T11:59:30.000Z added=2025-11-20T00:00:00.000Z",
      "* \(Self.uuid) self=no added=2026-11-21T11:18:00.000Z", "OK 2")
    #expect(
      shown == """
        UUID                                  SELF  NAME    SEEN  ADDED
        \(Self.uuid)  yes   laptop  now   1y ago
        \(Self.uuid)  no    -       -     42min ago

        """)
  }

  @Test func `a column without values is left out, and an undeclared attribute has a column`() throws {
    #expect(
      try text("devices", "* \(Self.uuid) self=no future=x", "OK 1")
        == "UUID                                  SELF  FUTURE\n\(Self.uuid)  no    x\n")
  }

  @Test func `hidden characters in a name are escaped`() {
    var row = ReplyLine.Content()
    row.attributes = [.init(name: "app.a\u{1b}[2J\nforged", value: "1")]
    let answer = DaemonConnection.Answer(rows: [row], final: .ok(ReplyLine.Content()))
    for form in [TextOutput.Form.lines, .bare] {
      #expect(TextOutput(.hyphen, form).text(answer, to: ["stats"]) == "\"app.a\\u001b[2J\\nforged\"=1\n")
    }
  }

  @Test func `numbers are aligned on the right`() throws {
    #expect(
      try text(
        "stats apps=yes", "* user:0 connections=7 subscribers=0 requests=12345", "* a connections=10 requests=1", "OK 2"
      )
        == """
        APP     CONNECTIONS  SUBSCRIBERS  REQUESTS
        user:0            7            0     12345
        a                10            -         1

        """)
  }

  @Test func `wide and combining characters keep the columns aligned`() throws {
    #expect(
      try text(
        "version history", "* 日本 build=e\u{301}x installed=x last=y", "* \"\u{1f600}\" build=ab installed=x last=y",
        "OK 2")
        == "VERSION  BUILD  INSTALLED  LAST\n日本     e\u{301}x     x          y\n\u{1f600}       ab     x          y\n")
  }

  @Test func `a value with control characters is shown as a JSON string`() throws {
    #expect(
      try text("app list", #"* "a\u001b[2Jb" vendor=v"#, "OK 1") == "APP            VENDOR\n\"a\\u001b[2Jb\"  v\n")
  }

  @Test func `long texts are cut to the width of the screen, but not identifiers`() throws {
    let row = "* \(Self.uuid) self=no name=\(String(repeating: "x", count: 60))"
    let shown = try text("devices", row, "OK 1")
    let lines = shown.split(separator: "\n")
    #expect(lines[1] == "\(Self.uuid)  no    \(String(repeating: "x", count: 35))…" && lines[1].count == 80, "\(shown)")
    #expect(lines[2].contains("--full"))
    let full = try text("devices", isFull: true, row, "OK 1")
    #expect(full.hasSuffix(String(repeating: "x", count: 60) + "\n") && !full.contains("--full"))
  }

  @Test func `a wide character is not cut in two`() throws {
    let name = String(repeating: "日", count: 30)
    let lines = try text("devices", columns: 60, "* \(Self.uuid) name=\(name)", "OK 1").split(separator: "\n")
    #expect(lines[1] == "\(Self.uuid)  \(String(repeating: "日", count: 10))…")
  }

  @Test func `on a narrow screen each row is a list of properties`() throws {
    let row = "* \(Self.uuid) self=no added=2026-11-21T11:18:00.000Z"
    let one = "  UUID: \(Self.uuid)\n  Self: no\n Added: 2026-11-21T11:18:00.000Z\n"
    #expect(try text("devices", columns: 40, row, row, "OK 2") == one + "\n" + one)
  }

  @Test func `--full shows times instead of ages`() throws {
    let row = "* user:0 vendor=user:0 installed=2026-11-21T11:18:00.000Z manifest=no"
    #expect(try text("app list", isFull: true, row, "OK 1").contains("2026-11-21T11:18:00.000Z"))
    #expect(try text("app list", row, "OK 1").contains("42min ago"))
  }

  @Test(arguments: [
    ("2026-11-21T12:00:00.001Z", "2026-11-21T12:00:00.001Z"), ("2026-11-21T11:59:00.000Z", "1min ago"),
    ("2026-11-21T11:00:00.000Z", "1h ago"), ("2026-11-20T12:00:00.001Z", "23h ago"),
    ("2026-11-20T12:00:00.000Z", "1d ago"), ("2025-11-22T12:00:00.000Z", "364d ago"), ("soon", "soon"),
  ])
  func `times are ages in one unit`(time: String, age: String) throws {
    #expect(try text("app list", "* a installed=\(time)", "OK 1").split(separator: "\n")[1] == "a    \(age)")
  }

  @Test func `attributes that depend on the row share one column`() throws {
    #expect(
      try text("restore end dry-run=yes", "* account replaced value=x", "* items added", "OK 2")
        == "RECORD   OUTCOME   DETAILS\naccount  replaced  value=x\nitems    added     -\n")
    #expect(
      try text("item find", "* service=s account=a group=g attr.host=mx1 attr.port=25", "OK 1")
        == "SERVICE  ACCOUNT  GROUP  ATTRIBUTES\ns        a        g      host=mx1 port=25\n")
    // They are never cut, since they may hold identifiers.
    let long = try text("restore end", columns: 40, "* device kept value=\(Self.uuid)", "OK 1")
    #expect(long == "RECORD  OUTCOME  DETAILS\ndevice  kept     value=\(Self.uuid)\n")
  }

  @Test func `colours mark titles and values that need attention, and are not part of the alignment`() throws {
    let shown = try text(
      "token list", isColoured: true, "* t provider=apns state=invalid", "* tt provider=fcm state=valid", "OK 2")
    #expect(
      shown == """
        \u{1b}[1mTOKEN\u{1b}[0m  \u{1b}[1mPROVIDER\u{1b}[0m  \u{1b}[1mSTATE\u{1b}[0m
        t      apns      \u{1b}[31minvalid\u{1b}[0m
        tt     fcm       \u{1b}[32mvalid\u{1b}[0m

        """)
    #expect(try text("status", isColoured: true, "* store=full", "* items=7", "OK").contains("Store: \u{1b}[31mfull"))
  }

  @Test func `an empty list says so`() throws { #expect(try text("devices", "OK 0") == "No entries.\n") }

  @Test(arguments: ColourChoice.allCases, [true, false])
  func `colours are for a terminal that has them, unless --color says otherwise`(
    choice: ColourChoice, isTerminal: Bool
  ) {
    let always = choice == .always
    #expect(
      choice.allows(isTerminal: isTerminal, kind: "xterm", noColour: nil) == (always || choice == .auto && isTerminal))
    for (kind, noColour) in [("dumb", nil), (nil, nil), ("xterm", "1")] as [(String?, String?)] {
      #expect(choice.allows(isTerminal: isTerminal, kind: kind, noColour: noColour) == always)
    }
  }
}
