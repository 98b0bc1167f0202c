/// The name of the verb at the beginning of words: their first two, or else their first one, in lower case.
package struct VerbName {
  /// The first word; empty if there is none.
  package let first: String
  /// The first two words, separated by a space; the first one if there is no other.
  package let both: String

  package init(_ words: [String]) {
    first = words.first?.lowercased() ?? ""
    // `joined` looks up conformances at its first use, which costs a client that asks once 50 µs.
    both = words.count > 1 ? "\(first) \(words[1].lowercased())" : first
  }

  /// Whether a verb or command has this name.
  package func matches(_ name: String) -> Bool { name == both || name == first }
}
