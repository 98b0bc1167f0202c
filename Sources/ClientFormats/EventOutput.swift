package import IdentityClient
package import IdentityCore
import IdentityWire
import LinuxSystem

/// Formats events, one line each: as text for people, or as JSON (RFC 8259) for programs.
package struct EventOutput {
  /// The format of a line.
  package enum Style: Equatable, Sendable {
    /// `TIME  SEQUENCE  TOPIC NAME  name=value …`, optionally in colour.
    case text(isColoured: Bool)
    /// A document of ``JSONOutput``: `{"sequence":44,"epoch":"…","time":"…","topic":"token","action":"replaced",…}`.
    case json
  }

  private let style: Style
  private let text: TextOutput
  private let json: JSONOutput

  /// Creates a formatter from the format of UUIDs and the style of lines.
  package init(_ format: UUIDFormat, _ style: Style) {
    self.style = style
    text = TextOutput(format, .lines)
    json = JSONOutput(format)
  }

  /// Returns the line of an event, with its line feed.
  ///
  /// - Parameter epoch: the epoch of the sequence number, which only JSON contains; nil if unknown.
  package func line(_ event: ReceivedEvent, epoch: Text? = nil) -> String {
    switch style {
    case .json: json.document(event, epoch: epoch)
    case .text(let isColoured): line(event, isColoured: isColoured)
    }
  }

  private func line(_ event: ReceivedEvent, isColoured: Bool) -> String {
    func shown(_ text: String, _ emphasis: Emphasis) -> String { emphasis.applied(to: text, isColoured: isColoured) }
    // The time is the first column, so it is left out of the attributes.
    let time = event.attributes.last { $0.name == "time" }
    let others = event.attributes.filter { $0.name != "time" }
    let words = event.words.map(text.visible).joined(separator: " ")
    let attributes = others.map { "\(shown("\($0.name)=", .cyan))\(text.visible($0.value))" }
    let head = [shown(time.map { text.visible($0.value) } ?? "-", .faint), "\(event.sequence)", shown(words, .bold)]
    return (head + (attributes.isEmpty ? [] : [attributes.joined(separator: " ")])).joined(separator: "  ") + "\n"
  }
}
