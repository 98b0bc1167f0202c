/// An emphasis of text on a terminal, with its code of ECMA-48, section 8.3.117 (SGR), which every terminal supports.
package enum Emphasis: Int, Sendable {
  /// Bold text.
  case bold = 1
  /// Faint text.
  case faint = 2
  /// Red text.
  case red = 31
  /// Green text.
  case green = 32
  /// Yellow text.
  case yellow = 33
  /// Cyan text.
  case cyan = 36

  /// Returns a text with the emphasis. Unchanged if the text is empty or the terminal has no colours.
  package func applied(to text: String, isColoured: Bool) -> String {
    isColoured && !text.isEmpty ? "\u{1b}[\(rawValue)m\(text)\u{1b}[0m" : text
  }
}
