import IdentityCore
import Testing

@testable import IdentityServer

struct LogTextTests {
  @Test(arguments: [
    ("two\nlines", #"two\nlines"#), ("two\r\nlines", #"two\r\nlines"#), ("a\ttab", #"a\ttab"#),
    ("\u{1b}[31mred", #"\u001b[31mred"#), ("\n<3>forged", #"\n<3>forged"#), ("nul\0", #"nul\u0000"#),
    ("del\u{7f}", #"del\u007f"#), ("next\u{85}line", #"next\u0085line"#), ("\u{9b}31mred", #"\u009b31mred"#),
    ("line\u{2028}paragraph\u{2029}", #"line\u2028paragraph\u2029"#), ("right\u{202e}left", #"right\u202eleft"#),
    ("tag\u{e0041}", #"tag\u{e0041}"#),
  ])
  func `row 51: line ends, control and format characters are escaped`(text: String, line: String) {
    #expect(LogText.line(text) == line)
  }

  @Test(arguments: ["", "org.example.app", #"dev-disk-by\x2duuid.device"#, "Ünïcode – 名前 🙂", "a\u{301}"])
  func `other text stays unchanged`(text: String) {
    #expect(Array(LogText.line(text).utf8) == Array(text.utf8))
  }

  @Test(arguments: ["x", "é", "🙂", "\n"])
  func `a text that is too long is cut`(character: String) {
    let line = LogText.line(String(repeating: character, count: Bound.logTextLength + 1))
    #expect(line.hasSuffix("…"))
    #expect(line.utf8.count <= Bound.logTextLength + 3)
    #expect(line.utf8.count > Bound.logTextLength - 4)
    let longest = String(repeating: "x", count: Bound.logTextLength)
    #expect(LogText.line(longest) == longest)
  }

  static let hostile = "evil\nidentityd: err: forged\r\n<3>\u{1b}[2J\u{2028}"

  private static let release = Release(distribution: Text(hostile), version: Text(hostile), build: Text(hostile))

  /// Every kind of entry that contains text chosen by others.
  private static let events: [LogEvent] =
    [
      .started(socket: hostile), .startRefused(hostile), .noMachineIdentifier(hostile, by: .daemon),
      .appInstalled(Text(hostile), by: .stranger), .appUninstalled(Text(hostile), by: .stranger),
      .identifierChanged(.installation(Text(hostile)), .renewed, by: .admin),
      .systemChanged(
        VersionReport(number: 1, session: UUID(high: 1, low: 1), release: release, state: .upgraded, previous: nil)),
      .systemUnknown(hostile), .itemsLocked(hostile), .secretDamaged(hostile, by: .stranger), .manifestFault(hostile),
      .handoverUnreadable(hostile), .notServing(hostile), .configurationWarning(hostile),
      .configurationRefused(hostile),
      .connectionRefused(reason: hostile, by: .stranger), .acceptPaused(hostile), .noStopTimer(hostile),
      .storeNotClosed(hostile),
      .connectionFailed(app: Text(hostile), processID: 1, reason: hostile, by: .stranger),
      .store(LogEvent.StoreNoticeText(level: .error, text: hostile)),
    ]
    + [
      CredentialRequest(peerName: Array("1/unit/a\u{2028}.service/b\u{2028}".utf8)).map {
        .credentialRefused($0, owner: 1, isOwnDaemon: false, .notFound(hostile), by: .stranger)
      }
    ].compactMap(\.self)
    + [
      .entriesSuppressed(.container(Text(hostile)), 1)
    ]

  @Test(arguments: events)
  func `row 51: no entry has more than one line, whatever its texts contain`(event: LogEvent) {
    let entry = event.entry
    for text in [entry.text] + entry.fields.map(\.value) {
      #expect(!text.unicodeScalars.contains { $0.value < 0x20 || $0 == "\u{2028}" }, "\(text)")
    }
  }
}
