package import IdentityClient
import IdentityCore
import IdentityWire

/// Formats an answer as one JSON document (RFC 8259) and a line feed, with the words and attributes of its lines.
///
/// This is the form of `--json=wire`. The document is `{"ok":true,"words":[…],"attributes":{…},"rows":[{"words":[…],"attributes":{…}}]}` or
/// `{"ok":false,"code":"…","text":"…"}`. All values but `ok` are strings.
package struct WireOutput {
  private let format: UUIDFormat

  /// Creates a formatter from the format of UUIDs.
  package init(_ format: UUIDFormat) { self.format = format }

  /// Returns the document for an answer, with a line feed.
  package func document(_ answer: DaemonConnection.Answer) -> String {
    switch answer.final {
    case .error(let code, let text): return "{\"ok\":false,\"code\":\(string(code)),\"text\":\(string(text))}\n"
    case .ok(let content), .row(let content), .event(_, let content):
      let rows = answer.rows.map { "{\(members($0))}" }.joined(separator: ",")
      return "{\"ok\":true,\(members(content)),\"rows\":[\(rows)]}\n"
    }
  }

  private func members(_ content: ReplyLine.Content) -> String {
    let words = content.words.map(string).joined(separator: ",")
    return "\"words\":[\(words)],\"attributes\":\(object(content.attributes))"
  }

  /// Returns attributes as a JSON object.
  private func object(_ attributes: [ReplyLine.Attribute]) -> String {
    "{" + attributes.map { "\(string($0.name)):\(string($0.value))" }.joined(separator: ",") + "}"
  }

  /// Returns a JSON string in which hidden characters are escaped.
  private func string(_ text: Text) -> String { WordEncoder.quoted(format.apply(to: text)) }
}
