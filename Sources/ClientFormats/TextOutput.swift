package import IdentityClient
import IdentityCore
package import IdentityWire
import LinuxSystem

/// Formats answers as text: with names before the values for people, as bare words for a pipe.
package struct TextOutput {
  /// The form of the text.
  package enum Form: Sendable {
    /// The positional words alone, for a pipe.
    case bare
    /// Words and attributes, and each row on a line.
    case lines
    /// Words, then attributes with their names, and rows in a table.
    case screen(Screen)
  }

  private let format: UUIDFormat
  private let form: Form

  /// Creates a formatter from the format of UUIDs and the form of the text.
  package init(_ format: UUIDFormat, _ form: Form) {
    self.format = format
    self.form = form
  }

  /// Returns the text of an answer to the words of a request. The text of an error is empty.
  ///
  /// - Parameter declared: the declaration of the answer, if the request is none of the verbs.
  package func text(
    _ answer: DaemonConnection.Answer, to words: [String], _ declared: Verb.Answer? = nil
  ) -> String {
    guard case .ok(let final) = answer.final else { return "" }
    let declared = (declared ?? VerbTable.verb(of: words)?.answer)?.answer(to: words)
    switch form {
    case .bare: return answer.rows.isEmpty ? bare(final) : answer.rows.map(bare).joined()
    case .lines: return answer.rows.isEmpty ? describe(final) : answer.rows.map(line).joined()
    case .screen(let screen):
      switch declared {
      case .list(let line), .report(_, _, let line):
        guard !answer.rows.isEmpty else { break }
        return table(Listing(answer.rows, line), on: screen)
      default: break
      }
      if case .list? = declared { return "No entries.\n" }
      return answer.rows.isEmpty ? describe(final) : rows(answer.rows)
    }
  }

  /// Formats a line for a pipe: the positional words, or the attributes if there are no positional words.
  private func bare(_ content: ReplyLine.Content) -> String {
    if content.words.isEmpty, content.attributes.isEmpty { return "" }
    if content.words.isEmpty {
      return content.attributes.map(pair).joined(separator: " ") + "\n"
    }
    return content.words.map(visible).joined(separator: " ") + "\n"
  }

  private func line(_ row: ReplyLine.Content) -> String {
    (row.words.map(visible) + row.attributes.map(pair)).joined(separator: "  ") + "\n"
  }

  /// Formats an attribute. Its name can come from another device, as the app of a report does.
  private func pair(_ attribute: ReplyLine.Attribute) -> String {
    "\(visible(attribute.name))=\(visible(attribute.value))"
  }

  /// Formats rows without a declaration. Rows with one attribute each form a list of properties.
  private func rows(_ rows: [ReplyLine.Content]) -> String {
    guard rows.allSatisfy({ $0.words.isEmpty && $0.attributes.count == 1 }) else { return rows.map(line).joined() }
    return properties(rows.flatMap(\.attributes).map { ($0.name, $0.value) })
  }

  private func describe(_ content: ReplyLine.Content) -> String {
    if content.words.isEmpty, content.attributes.isEmpty { return "OK\n" }
    let head = content.words.map(visible).joined(separator: " ")
    let shown = Emphasis.bold.applied(to: head, isColoured: isColoured)
    return (head.isEmpty ? "" : shown + "\n") + properties(content.attributes.map { ($0.name, $0.value) })
  }

  /// Formats properties as hostnamectl(1) does, with right-aligned names before a colon.
  private func properties(_ properties: [(name: Text, value: Text)]) -> String {
    let names = properties.map { label($0.name) }
    let width = (names.map(\.count).max() ?? 0) + 1
    return zip(names, properties).map { name, property in
      let value = visible(property.value)
      let shown = Emphasis.of(property.name, property.value)?.applied(to: value, isColoured: isColoured) ?? value
      return String(repeating: " ", count: width - name.count) + "\(name): \(shown)\n"
    }.joined()
  }

  private func label(_ name: Text) -> String {
    let text = "\(name)"
    if ["id", "uid", "gid", "pid", "uuid"].contains(text) { return text.uppercased() }
    return text.prefix(1).uppercased() + String(text.dropFirst().map { $0 == "-" ? " " : $0 })
  }

  /// Returns whether a value is a fault or a warning, which a person has to notice.
  package static func needsAttention(_ attribute: ReplyLine.Attribute) -> Bool {
    let emphasis = Emphasis.of(attribute.name, attribute.value)
    return emphasis == .red || emphasis == .yellow
  }

  private var isColoured: Bool { if case .screen(let screen) = form { screen.isColoured } else { false } }

  /// Returns a value, as a JSON string if it has hidden characters.
  ///
  /// Hidden characters could move the cursor or change the order of the words around them.
  func visible(_ value: Text) -> String {
    let text = format.apply(to: value)
    return text.unicodeScalars.contains(where: WordEncoder.isHidden) ? WordEncoder.quoted(text) : text
  }
}

// MARK: - Tables

extension TextOutput {
  /// Formats rows as a table. If the screen is too narrow for it, each row is a list of properties.
  private func table(_ listing: Listing, on screen: Screen) -> String {
    let columns = listing.columns.map { column in
      Table.Column(
        title: "\(column.name)".uppercased(), isElastic: Self.isElastic(column.kind) && !column.isOpen,
        isOpen: column.isOpen, isNumber: column.kind == .number)
    }
    let cells = listing.rows.map { row in
      zip(listing.columns, row).map { column, value in cell(value, of: column, on: screen) }
    }
    let width = screen.isFull ? nil : screen.columns
    if let table = Table(columns, cells).text(within: width, isColoured: screen.isColoured) {
      let hint = "Some values are cut. To see them in full, add --full.\n"
      return table.text + (table.isCut ? Emphasis.faint.applied(to: hint, isColoured: screen.isColoured) : "")
    }
    return listing.rows.map { row in
      properties(zip(listing.columns, row).compactMap { column, value in value.map { (column.name, $0) } })
    }.joined(separator: "\n")
  }

  private func cell(_ value: Text?, of column: Listing.Column, on screen: Screen) -> Table.Cell {
    guard let value else { return Table.Cell(text: "-", emphasis: .faint) }
    var text = value.isEmpty ? "\"\"" : visible(value)
    if !screen.isFull, column.kind == .time, let time = Timestamp(parsing: value) {
      text = Age.text(of: time, at: screen.now) ?? text
    }
    return Table.Cell(text: text, emphasis: Emphasis.of(column.name, value))
  }

  /// Whether a person can still use a value of this kind if it is cut.
  private static func isElastic(_ kind: Verb.Field.Kind) -> Bool {
    switch kind {
    case .word, .list, .base64, .document: true
    case .uuid, .time, .number, .boolean: false
    }
  }
}
