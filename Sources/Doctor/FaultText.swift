/// Returns the file that a text names at its beginning, as `PATH: …` or `PATH:LINE: …`; nil if it names none.
///
/// - Parameter ending: the end of the names of such files.
func file(in text: String, endingWith ending: String) -> String? {
  guard text.hasPrefix("/"), let front = front(of: text, before: "\(ending):") else { return nil }
  return front + ending
}

/// Returns the part of a text before the first occurrence of a mark; nil if there is none.
func front(of text: String, before mark: String) -> String? {
  var rest = text[...]
  while !rest.isEmpty {
    if rest.hasPrefix(mark) { return String(text[..<rest.startIndex]) }
    rest.removeFirst()
  }
  return nil
}
