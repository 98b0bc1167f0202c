/// The name of the verb or command at the beginning of words, in lower case.
package struct VerbName {
  /// The first word; empty if there is none.
  package let first: String
  /// The first two words, separated by a space; nil if there is only one, which may have a space of its own.
  package let both: String?
  /// The first two words, or else the first one.
  package var text: String { both ?? first }

  package init(_ words: [String]) {
    first = words.first?.lowercased() ?? ""
    // `joined` looks up conformances at its first use, which costs a client that asks once 50 µs.
    both = words.count > 1 ? "\(first) \(words[1].lowercased())" : nil
  }

  /// Whether a verb or command has this name.
  package func matches(_ name: String) -> Bool { name == both || name == first }
}
