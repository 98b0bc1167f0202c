package import IdentityClient
package import IdentityCore
import IdentityWire

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
    text = TextOutput(format, isForPeople: true)
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
    /// Wraps a text in codes of ECMA-48, section 8.3.117, which every terminal supports: 1 bold, 2 faint, 36
    /// cyan, 0 reset.
    func shown(_ text: String, _ code: Int) -> String {
      isColoured && !text.isEmpty ? "\u{1b}[\(code)m\(text)\u{1b}[0m" : text
    }
    // The time is the first column, so it is left out of the attributes.
    let time = event.attributes.last { $0.name == "time" }
    let others = event.attributes.filter { $0.name != "time" }
    let words = event.words.map(text.visible).joined(separator: " ")
    let attributes = others.map { "\(shown("\($0.name)=", 36))\(text.visible($0.value))" }
    let head = [shown(time.map { text.visible($0.value) } ?? "-", 2), "\(event.sequence)", shown(words, 1)]
    return (head + (attributes.isEmpty ? [] : [attributes.joined(separator: " ")])).joined(separator: "  ") + "\n"
  }
}
