/// The layout of help: paragraphs, and lists in two columns, wrapped at the width of the terminal.
package struct HelpLayout: Sendable {
  /// An entry of a list: a command or an option, and its effect.
  package struct Entry: Sendable {
    let head: String
    let text: String

    package init(_ head: String, _ text: String) {
      self.head = head
      self.text = text
    }
  }

  private let width: Int

  /// The widest first column of a list. A longer head has lines of its own.
  private var longestHead: Int { min(26, width / 3) }
  /// Narrower lines would have a single word.
  private static let leastWidth = 40

  /// Creates a layout.
  ///
  /// - Parameter width: the width of the terminal in columns.
  package init(width: Int) { self.width = max(width, Self.leastWidth) }

  /// Returns a list with a line feed at the end of each line.
  package func list(_ entries: [Entry]) -> String {
    let widest = entries.map { DisplayWidth.columns(of: $0.head) }.filter { $0 <= longestHead }.max() ?? 0
    // If all heads are long, texts begin at a place that shows they belong to the head above.
    let column = widest == 0 ? 8 : widest + 4
    return entries.map { entry in
      let text = lines(entry.text, indent: column)
      guard DisplayWidth.columns(of: entry.head) <= widest else {
        return wrapped(entry.head, indent: 2, next: 6) + text
      }
      let head = "  " + entry.head
      return head + text.dropFirst(DisplayWidth.columns(of: head))
    }.joined()
  }

  /// Returns a paragraph. Its first line begins at column `indent`, the other lines at column `next`.
  package func wrapped(_ text: String, indent: Int = 0, next: Int = 0) -> String {
    var result = ""
    var line = String(repeating: " ", count: indent)
    var isEmpty = true
    for word in text.split(separator: " ") {
      let length = DisplayWidth.columns(of: line) + DisplayWidth.columns(of: String(word)) + (isEmpty ? 0 : 1)
      if length > width, !isEmpty {
        result += line + "\n"
        line = String(repeating: " ", count: next)
        isEmpty = true
      }
      line += (isEmpty ? "" : " ") + word
      isEmpty = false
    }
    return result + line + "\n"
  }

  private func lines(_ text: String, indent: Int) -> String { wrapped(text, indent: indent, next: indent) }
}
