import IdentityCore

extension Verb {
  /// Everything about a verb that peers, people and the manual are told: its words, its arguments and its answer.
  ///
  /// The verbs of identityd have one each, in ``VerbTable``, and so have those of identity-fleet, in ``ControlVerb``.
  /// Every request looks at one, so a declaration is a class, which costs one reference.
  package final class Declaration: Sendable {
    /// The words of the verb, in lower case with one space between them.
    package let words: String
    /// The positional words after the verb, in order.
    package let operands: [Operand]
    /// The attributes that the verb takes, in any order.
    package let attributes: [Attribute]
    /// The effect of the verb, in one sentence.
    package let summary: String
    /// The content of the answer.
    package let answer: Answer
    /// The loss that the verb causes for good. Each declaration has to state it.
    package let loss: Loss
    /// Requests with their answers.
    package let examples: [Example]
    /// Whether error texts must not repeat any word of the request.
    let isPrivate: Bool

    /// Declares a verb.
    package init(
      words: String, operands: [Operand] = [], attributes: [Attribute] = [], summary: String, answer: Answer,
      loss: Loss, examples: [Example]
    ) {
      self.words = words
      self.operands = operands
      self.attributes = attributes
      self.summary = summary
      self.answer = answer
      self.loss = loss
      self.examples = examples
      isPrivate = operands.contains(where: \.isPrivate)
    }

    /// The verb with its operands and attributes, as the manual writes it: `get uuid [count=N] [version=4|7]`.
    package var usage: String { Verb.usage(of: words, operands, attributes) }

    /// Returns whether the verb begins with these words, in upper or lower case.
    func begins(with words: [Text]) -> Bool {
      let own = self.words.utf8.split(separator: UInt8(ascii: " "))
      return own.count >= words.count && zip(own, words).allSatisfy { $0.elementsEqual($1.bytes.map(lowercased)) }
    }
  }

  /// The answer to `help`: a row for each verb.
  static let help = Answer.list(Line([.word("verb")], [.word("usage"), .word("access"), .word("summary")]))
}

extension Reply {
  /// Returns the answer to `help [VERB]`, with a row for each verb that begins with the words.
  ///
  /// - Throws: `unknownVerb` if no verb begins with them.
  static func help(
    _ words: [Text], of verbs: [(declaration: Verb.Declaration, access: Verb.Access)]
  ) throws(Refusal) -> Reply {
    let found = verbs.filter { $0.declaration.begins(with: words) }
    guard !found.isEmpty else { throw .unknownVerb(Text(words.map(\.description).joined(separator: " "))) }
    var reply = Reply()
    for (verb, access) in found {
      reply.row()
      reply.word(.string(verb.words))
      reply.attribute("usage", .string(verb.usage))
      reply.attribute("access", .string(access.rawValue))
      reply.attribute("summary", .string(verb.summary))
    }
    reply.ok()
    reply.word(.number(Int64(found.count)))
    return reply
  }
}
