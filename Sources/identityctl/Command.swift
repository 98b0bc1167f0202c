import IdentityWire
import LinuxSystem

/// A verb of the daemon or a command of the client, as help and corrections need both.
struct Command {
  let words: String
  let operands: [Verb.Operand]
  let attributes: [Verb.Attribute]
  let summary: String
  let isDestructive: Bool

  /// The verbs of the daemon, in the order of their table.
  static let verbs = VerbTable.verbs.map {
    Command(
      words: $0.words, operands: $0.operands, attributes: $0.attributes, summary: $0.summary,
      isDestructive: $0.loss.consequence != nil)
  }

  /// The commands of the client, in the order of their table.
  static let own = ClientCommand.all.map {
    Command(
      words: $0.words, operands: $0.operands, attributes: $0.attributes, summary: $0.summary,
      isDestructive: $0.loss.consequence != nil)
  }

  /// The verbs, then the commands of the client.
  static let all = verbs + own

  /// The usage, in which a secret comes from a file.
  var usage: String {
    let groups = Options.groups(of: words)
    let lead = groups.compactMap(\.replaced).first { replaced in
      operands.contains { $0.name == replaced && !$0.isOptional }
        || attributes.contains { $0.name == replaced && $0.isRequired }
    }
    let options = groups.filter { $0.replaced == lead && lead != nil }.flatMap(\.options)
    return Verb.usage(
      of: ([words] + options.map { "--\($0.name)=\($0.value ?? "")" }).joined(separator: " "),
      operands.filter { $0.name != lead }, attributes.filter { $0.name != lead })
  }
}
