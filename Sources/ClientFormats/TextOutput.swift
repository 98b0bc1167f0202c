package import IdentityClient
import IdentityCore
import IdentityWire

/// Writes answers as text: with names in front of the values for people, bare words in a pipe.
package struct TextOutput {
  private let format: UUIDFormat
  private let isForPeople: Bool

  /// Says for whom.
  package init(_ format: UUIDFormat, isForPeople: Bool) {
    self.format = format
    self.isForPeople = isForPeople
  }

  /// The text of an answer to these words.
  package func text(_ answer: DaemonConnection.Answer, to words: [String]) -> String {
    guard case .ok(let final) = answer.final else { return "" }
    if !answer.rows.isEmpty { return rows(answer.rows) }
    return isForPeople ? describe(final, to: words) : bare(final)
  }

  /// In a pipe: the positional words, or the attributes of a line that has no others.
  private func bare(_ content: ReplyLine.Content) -> String {
    if content.words.isEmpty, content.attributes.isEmpty { return "" }
    if content.words.isEmpty {
      return content.attributes.map { "\($0.name)=\(visible($0.value))" }.joined(separator: " ") + "\n"
    }
    return content.words.map(visible).joined(separator: " ") + "\n"
  }

  private func rows(_ rows: [ReplyLine.Content]) -> String {
    guard isForPeople else { return rows.map(bare).joined() }
    // Rows of one attribute each are a list of properties; others are a table.
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

  /// As hostnamectl(1) shows them: the names right-aligned before a colon.
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

  /// The value as it is, or as a JSON string if it has hidden characters, which could move the cursor or change the order
  /// of the words around them.
  func visible(_ value: Text) -> String {
    let text = format.apply(to: value)
    return text.unicodeScalars.contains(where: WordEncoder.isHidden) ? WordEncoder.quoted(text) : text
  }
}
