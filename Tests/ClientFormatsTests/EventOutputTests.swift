import ClientFormats
import IdentityClient
import IdentityCore
import IdentityWire
import Testing

struct EventOutputTests {
  /// Parses an event line as a follower does, and formats the event.
  private func written(
    _ line: String, _ style: EventOutput.Style, _ format: UUIDFormat = .hyphen, epoch: Text? = nil
  ) throws -> String {
    guard case .event(let sequence, let content)? = ReplyLine(Array(line.utf8)) else {
      throw NoEvent(line: line)
    }
    return EventOutput(format, style).line(ReceivedEvent(sequence: sequence, content: content), epoch: epoch)
  }

  private struct NoEvent: Error { let line: String }

  private static let replaced = "EVENT 44 token replaced app=unit:player.service time=2026-11-21T08:39:12.345Z"
  private static let listed =
    "EVENT 7 devices added value=557e5958-d390-4cbf-b928-2a2b19a1399a time=2026-11-21T08:39:12.345Z"

  @Test(arguments: [
    (replaced, "2026-11-21T08:39:12.345Z  44  token replaced  app=unit:player.service\n"),
    ("EVENT 1 device suspect time=2026-11-21T08:39:12.345Z", "2026-11-21T08:39:12.345Z  1  device suspect\n"),
    (
      "EVENT 2 item changed b=2 label=\"my key\" time=2026-11-21T08:39:12.345Z",
      "2026-11-21T08:39:12.345Z  2  item changed  b=2 label=my key\n"
    ),
    ("EVENT 3 item changed", "-  3  item changed\n"),
    ("EVENT 4 item \"a\\u001b[1m\" n=\"\\n\" e=\"\"", "-  4  item \"a\\u001b[1m\"  n=\"\\n\" e=\n"),
    ("EVENT 5 item a n=a\u{202e}b e=\u{feff}", "-  5  item a  n=\"a\\u202eb\" e=\"\\ufeff\"\n"),
    ("EVENT 9223372036854775807 a b c=\"\u{fc}\"", "-  9223372036854775807  a b  c=\u{fc}\n"),
  ])
  func `an event is one line of text with the time first and no control characters`(line: String, expected: String)
    throws
  {
    #expect(try written(line, .text(isColoured: false)) == expected)
  }

  @Test(arguments: [
    (
      replaced,
      "{\"sequence\":44,\"time\":\"2026-11-21T08:39:12.345Z\",\"topic\":\"token\",\"action\":\"replaced\",\"app\":\"unit:player.service\"}\n"
    ),
    ("EVENT 3 item changed", "{\"sequence\":3,\"topic\":\"item\",\"action\":\"changed\"}\n"),
    (
      "EVENT 4 item a n=\"\\n\\\"\\u001b\" count=3 e=\"\"",
      "{\"sequence\":4,\"topic\":\"item\",\"action\":\"a\",\"n\":\"\\n\\\"\\u001b\",\"count\":\"3\",\"e\":\"\"}\n"
    ),
    (
      "EVENT 5 item a\u{2067}b n=\u{61c}",
      "{\"sequence\":5,\"topic\":\"item\",\"action\":\"a\\u2067b\",\"n\":\"\\u061c\"}\n"
    ),
  ])
  func `an event is one JSON object with its attributes as strings`(line: String, expected: String) throws {
    #expect(try written(line, .json) == expected)
  }

  @Test func `JSON has the epoch of the sequence number, in the form in which the daemon wants it back`() throws {
    let epoch: Text = "557e5958-d390-4cbf-b928-2a2b19a1399a"
    #expect(
      try written("EVENT 3 item changed", .json, .upper, epoch: epoch)
        == "{\"sequence\":3,\"epoch\":\"\(epoch)\",\"topic\":\"item\",\"action\":\"changed\"}\n")
    #expect(
      try written("EVENT 3 item changed", .text(isColoured: false), epoch: epoch) == "-  3  item changed\n")
  }

  @Test(arguments: [
    (UUIDFormat.hyphen, "557e5958-d390-4cbf-b928-2a2b19a1399a"), (.plain, "557e5958d3904cbfb9282a2b19a1399a"),
    (.urn, "urn:uuid:557e5958-d390-4cbf-b928-2a2b19a1399a"), (.upper, "557E5958-D390-4CBF-B928-2A2B19A1399A"),
  ])
  func `--format sets the form in which UUIDs are written`(format: UUIDFormat, expected: String) throws {
    #expect(
      try written(Self.listed, .text(isColoured: false), format).hasSuffix("  devices added  value=\(expected)\n"))
    #expect(try written(Self.listed, .json, format).contains(",\"value\":\"\(expected)\"}"))
  }

  @Test func `colours change nothing but the colour`() throws {
    let coloured = try written(Self.replaced, .text(isColoured: true))
    #expect(coloured.hasPrefix("\u{1b}[2m2026-11-21T08:39:12.345Z\u{1b}[0m  44  \u{1b}[1mtoken replaced\u{1b}[0m  "))
    let plain = coloured.replacing(/\u{1b}\[\d+m/, with: "")
    #expect(plain == (try written(Self.replaced, .text(isColoured: false))))
  }
}
