import ClientFormats
import IdentityWire
import LinuxSystem

/// A verb of the daemon or a command of the client, as help and corrections need both.
struct Command {
  let words: String
  let operands: [Verb.Operand]
  let attributes: [Verb.Attribute]
  let summary: String
  let isDestructive: Bool
  /// Whether only programs use the verb, because a command of the client or another program does it for people.
  var isForPrograms = false

  /// The verbs that only programs use, by the words that they begin with.
  private static let forPrograms = [
    "ping", "hello", "quit", "help", "devices put", "devices remove", "fleet", "backup", "restore", "subscribe",
    "unsubscribe",
  ]

  /// The verbs of the daemon, in the order of their table.
  static let verbs = VerbTable.verbs.map {
    Command(
      words: $0.words, operands: $0.operands, attributes: $0.attributes, summary: $0.summary,
      isDestructive: $0.loss.consequence != nil, isForPrograms: begins($0.words, withOneOf: forPrograms))
  }

  /// Whether words begin with one of these, word by word.
  static func begins(_ words: String, withOneOf beginnings: [String]) -> Bool {
    beginnings.contains { "\(words) ".hasPrefix("\($0) ") }
  }

  /// The commands of the client, in the order of their table.
  static let own = ClientCommand.all.map {
    Command(
      words: $0.words, operands: $0.operands, attributes: $0.attributes, summary: $0.summary,
      isDestructive: $0.loss.consequence != nil)
  }

  /// The verbs, then the commands of the client.
  static let all = verbs + own

  /// Returns the words of a request to the daemon with UUIDs in its form, where the verb takes UUIDs.
  ///
  /// The protocol has one form, and people paste what another program wrote.
  static func withCanonicalUUIDs(_ words: [String]) -> [String] {
    guard let verb = VerbTable.verb(of: words) else { return words }
    return withCanonicalUUIDs(words, of: verb.words, verb.operands, verb.attributes)
  }

  /// Returns the words of a request with UUIDs in the form of the protocol, where a verb or a command takes UUIDs.
  static func withCanonicalUUIDs(
    _ words: [String], of name: String, _ operands: [Verb.Operand], _ attributes: [Verb.Attribute]
  ) -> [String] {
    let takesUUID = operands.contains { ["UUID", "VALUE"].contains($0.name) }
    let names = attributes.filter { $0.value.hasPrefix("UUID") }.map { "\($0.name)=" }
    let count = name.split(separator: " ").count
    return words.enumerated().map { index, word in
      if let name = names.first(where: { word.lowercased().hasPrefix($0) }) {
        let values = word.dropFirst(name.count).split(separator: ",", omittingEmptySubsequences: false)
        return word.prefix(name.count) + values.map { UUIDFormat.canonical($0) ?? String($0) }.joined(separator: ",")
      }
      return takesUUID && index >= count ? UUIDFormat.canonical(word) ?? word : word
    }
  }

  /// The usage, in which options take the place of the words that they supply.
  var usage: String {
    let groups = Options.groups(of: words).filter { $0.replaced != nil }
    let replaced = Set(groups.compactMap(\.replaced))
    func spelled(isRequired: Bool) -> [String] {
      groups.filter { isRequired == self.isRequired($0.replaced) }.flatMap(\.options).map { option in
        let text = "--\(option.name)\(option.value.map { "=\($0)" } ?? "")"
        return isRequired ? text : "[\(text)]"
      }
    }
    let usage = Verb.usage(
      of: ([words] + spelled(isRequired: true)).joined(separator: " "), operands.filter { !replaced.contains($0.name) },
      attributes.filter { !replaced.contains($0.name) })
    return ([usage] + spelled(isRequired: false)).joined(separator: " ")
  }

  private func isRequired(_ name: String?) -> Bool {
    operands.contains { $0.name == name && !$0.isOptional } || attributes.contains { $0.name == name && $0.isRequired }
  }
}
