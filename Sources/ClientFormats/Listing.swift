import IdentityCore
import IdentityWire

/// The rows of an answer in columns, as the verb declares them (``Verb/Line``).
///
/// A column without any value is left out. Attributes without a declaration, such as those of a later daemon, are
/// columns after the others. If the declaration is open, they are together in the column `details`.
struct Listing {
  /// A column: the name of a field, and the kind of its values.
  struct Column {
    let name: Text
    let kind: Verb.Field.Kind
    /// Whether the values are all attributes that depend on the row.
    var isOpen = false
  }

  let columns: [Column]
  /// The values of each row by column. Nil for a value that the row lacks.
  let rows: [[Text?]]

  private typealias Named = (name: Text, value: Text)

  /// Sorts the words and attributes of rows into columns.
  init(_ contents: [ReplyLine.Content], _ line: Verb.Line) {
    var found = line.fields.map { Column(name: Text($0.name), kind: $0.kind) }
    var values = contents.map { content in Self.values(of: content, line) }
    var others: [Text] = []
    for name in values.flatMap(\.others).map(\.name) where !others.contains(name) { others.append(name) }
    if line.isOpen, !others.isEmpty {
      found.append(Column(name: "details", kind: .word, isOpen: true))
      for index in values.indices {
        let others = values[index].others
        values[index].known.append(others.isEmpty ? nil : Self.joined(others))
      }
    } else {
      found += others.map { Column(name: $0, kind: .word) }
      for index in values.indices {
        for name in others { values[index].known.append(values[index].others.first { $0.name == name }?.value) }
      }
    }
    let used = found.indices.filter { index in values.contains { $0.known[index] != nil } }
    columns = used.map { found[$0] }
    rows = values.map { row in used.map { row.known[$0] } }
  }

  /// Returns the values of the declared fields in order, and all other words and attributes.
  private static func values(
    of content: ReplyLine.Content, _ line: Verb.Line
  ) -> (known: [Text?], others: [Named]) {
    var known: [Text?] = line.words.indices.map { $0 < content.words.count ? content.words[$0] : nil }
    var others: [Named] = []
    let words = content.words.dropFirst(line.words.count).map(\.description)
    if !words.isEmpty { others.append(("words", Text(words.joined(separator: " ")))) }
    for field in line.attributes {
      guard let prefix = field.prefix else {
        known.append(content[Text(field.name)])
        continue
      }
      let members = content.attributes.filter { "\($0.name)".hasPrefix(prefix) }.map {
        (Text(String("\($0.name)".dropFirst(prefix.count))), $0.value)
      }
      known.append(members.isEmpty ? nil : joined(members))
    }
    for attribute in content.attributes {
      let isKnown = line.attributes.contains { field in
        field.prefix.map { "\(attribute.name)".hasPrefix($0) } ?? (Text(field.name) == attribute.name)
      }
      if !isKnown { others.append((attribute.name, attribute.value)) }
    }
    return (known, others)
  }

  private static func joined(_ attributes: [Named]) -> Text {
    Text(attributes.map { "\($0.name)=\($0.value)" }.joined(separator: " "))
  }
}
