package import IdentityClient
import IdentityCore
import IdentityWire

/// Formats answers as text: with names before the values for people, as bare words for a pipe.
package struct TextOutput {
  private let format: UUIDFormat
  private let isForPeople: Bool

  /// Creates a formatter from the format of UUIDs and the kind of reader.
  package init(_ format: UUIDFormat, isForPeople: Bool) {
    self.format = format
    self.isForPeople = isForPeople
  }

  /// Returns the text of an answer to the words of a request. The text of an error is empty.
  package func text(_ answer: DaemonConnection.Answer, to words: [String]) -> String {
    guard case .ok(let final) = answer.final else { return "" }
    if !answer.rows.isEmpty { return rows(answer.rows) }
    return isForPeople ? describe(final, to: words) : bare(final)
  }

  /// Formats a line for a pipe: the positional words, or the attributes if there are no positional words.
  private func bare(_ content: ReplyLine.Content) -> String {
    if content.words.isEmpty, content.attributes.isEmpty { return "" }
    if content.words.isEmpty {
      return content.attributes.map { "\($0.name)=\(visible($0.value))" }.joined(separator: " ") + "\n"
    }
    return content.words.map(visible).joined(separator: " ") + "\n"
  }

  private func rows(_ rows: [ReplyLine.Content]) -> String {
    guard isForPeople else { return rows.map(bare).joined() }
    // Rows with one attribute each form a list of properties; other rows form a table.
    if rows.allSatisfy({ $0.words.isEmpty && $0.attributes.count == 1 }) {
      return properties(rows.flatMap(\.attributes))
    }
    return rows.map { row in
      let attributes = row.attributes.map { "\($0.name)=\(visible($0.value))" }
      return (row.words.map(visible) + attributes).joined(separator: "  ") + "\n"
    }.joined()
  }

  private func describe(_ content: ReplyLine.Content, to words: [String]) -> String {
    if content.words.isEmpty, content.attributes.isEmpty { return "OK\n" }
    let head = content.words.map(visible).joined(separator: " ")
    return (head.isEmpty ? "" : head + "\n") + properties(content.attributes)
  }

  /// Formats properties as hostnamectl(1) does, with right-aligned names before a colon.
  private func properties(_ attributes: [ReplyLine.Attribute]) -> String {
    let names = attributes.map { label($0.name) }
    let width = (names.map(\.count).max() ?? 0) + 1
    return zip(names, attributes).map { name, attribute in
      String(repeating: " ", count: width - name.count) + "\(name): \(visible(attribute.value))\n"
    }.joined()
  }

  private func label(_ name: Text) -> String {
    let text = "\(name)"
    if ["id", "uid", "gid", "pid"].contains(text) { return text.uppercased() }
    return text.prefix(1).uppercased() + String(text.dropFirst().map { $0 == "-" ? " " : $0 })
  }

  /// Returns a value, as a JSON string if it has hidden characters.
  ///
  /// Hidden characters could move the cursor or change the order of the words around them.
  func visible(_ value: Text) -> String {
    let text = format.apply(to: value)
    return text.unicodeScalars.contains(where: WordEncoder.isHidden) ? WordEncoder.quoted(text) : text
  }
}
