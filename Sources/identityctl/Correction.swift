import ClientFormats
import IdentityCore
import IdentityWire

/// The correction of a mistyped verb, attribute, level or topic.
struct Correction {
  /// The words that were probably meant.
  private let meant: String

  /// The question whether they were meant.
  var question: String { "did you mean '\(meant)'?" }

  /// Finds a correction for the words of a request. Nil if nothing known is near, or if all words are known.
  init?(of words: [String]) {
    let positional = words.filter { !WordEncoder.looksLikeAttribute(Array($0.utf8)) }.map { $0.lowercased() }
    guard let first = positional.first else { return nil }
    let heads = positional.prefix(2).joined(separator: " ")
    let names = Command.all.map(\.words)
    guard names.contains(heads) || names.contains(first) else {
      // Two words first: `item` alone is no verb, so that `itme find` is nearer to `item find`.
      guard
        let meant = Suggestion.nearest(to: heads, among: names)
          ?? Suggestion.nearest(to: first, among: names.filter { !$0.contains(" ") })
      else { return nil }
      self.meant = meant
      return
    }
    let name = names.contains(heads) ? heads : first
    guard let meant = Self.attribute(words, of: name) ?? Self.operand(positional, of: name, names) else { return nil }
    self.meant = meant
  }

  private static func attribute(_ words: [String], of name: String) -> String? {
    let known = Command.all.filter { $0.words == name }.flatMap(\.attributes)
    for word in words where WordEncoder.looksLikeAttribute(Array(word.utf8)) {
      let given = word.prefix { $0 != "=" }.lowercased()
      guard !known.contains(where: { $0.isMeant(by: given.utf8) }) else { continue }
      return Suggestion.nearest(to: given, among: known.filter { $0.suffix == nil }.map(\.name)).map { "\($0)=" }
    }
    return nil
  }

  private static func operand(_ positional: [String], of name: String, _ names: [String]) -> String? {
    let operands = Command.all.filter { $0.words == name }.flatMap(\.operands)
    let given = positional.dropFirst(name.split(separator: " ").count)
    // `devices` takes no operand, so that `devices forgot` is nearer to `devices forget`.
    guard let kind = operands.first?.name else {
      guard !given.isEmpty, name == positional[0] else { return nil }
      return Suggestion.nearest(to: positional.prefix(2).joined(separator: " "), among: names.filter { $0 != name })
    }
    let known: [String]
    switch kind {
    case "LEVEL": known = Level.allCases.map(\.rawValue)
    case "TOPIC": known = Topic.allCases.map(\.rawValue)
    default: return nil
    }
    return given.first { !known.contains($0) }.flatMap { Suggestion.nearest(to: $0, among: known) }
  }
}
