import ClientFormats
import IdentityCore
import IdentityWire
import LinuxSystem

/// The correction of a mistyped verb, attribute, level, topic or option.
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

  /// Finds a correction for an argument that is no option. Nil if no option of the command is near.
  ///
  /// - Parameter words: the words of the command line, which name the command.
  init?(ofOption argument: String, with words: [String]) {
    let name = String(argument.drop { $0 == "-" }.prefix { $0 != "=" })
    // A letter alone is as near to every other letter.
    guard name.utf8.count > 1 else { return nil }
    let known = Options.applicable(to: words).map(\.name)
    // `-json` is a cluster of letters, of which not all are known.
    guard let meant = known.first(where: { $0 == name }) ?? Suggestion.nearest(to: name, among: known) else {
      return nil
    }
    self.meant = "--\(meant)"
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
