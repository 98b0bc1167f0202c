package import IdentityCore

/// One row of the verb table: all there is to know of a verb but its rule.
///
/// Parsing, `help`, the manual, the client and the tests all read it.
package struct Verb: Sendable {
  /// A positional word behind the verb.
  package struct Operand: Sendable {
    /// As the manual writes it, in capitals.
    package let name: String
    /// Whether it may be left out.
    package let isOptional: Bool
    /// Whether any number of words may follow in its place.
    package let repeats: Bool

    /// A word that has to be there.
    package static func required(_ name: String) -> Operand { Operand(name: name, isOptional: false, repeats: false) }
    /// Any number of words, none included.
    package static func any(_ name: String) -> Operand { Operand(name: name, isOptional: true, repeats: true) }
  }

  /// A `name=value` that the verb takes.
  package struct Attribute: Sendable {
    /// In lower case.
    package let name: String
    /// What may stand behind the `=`, as the manual writes it.
    package let value: String

    /// Declares an attribute.
    package init(_ name: String, _ value: String) {
      self.name = name
      self.value = value
    }
  }

  /// Who may use the verb.
  package enum Access: String, Sendable {
    /// Anybody, for the app that it is.
    case app
    /// Root, or a member of `AdminGroup=`.
    case admin
  }

  /// Where a request is carried out.
  package enum Kind: String, Sendable {
    /// By the loop alone.
    case local
    /// From the committed registry; at its first use it may take a change.
    case question
    /// By the writer; `OK` says that it is on disk.
    case change
  }

  /// A request and its answer, shown in the manual and run by the tests. In the answer `<uuid>`, `<time>`, `<number>`
  /// and `<word>` stand for any such word, and `…` for any further words.
  package struct Example: Sendable {
    /// The request line, without its end.
    package let request: String
    /// The lines of the answer.
    package let reply: [String]

    /// Declares an example.
    package init(_ request: String, _ reply: String...) {
      self.request = request
      self.reply = reply
    }
  }

  /// The words that name it, in lower case with one space between.
  package let words: String
  /// The positional words behind it, in order.
  package let operands: [Operand]
  /// The attributes it takes, in any order.
  package let attributes: [Attribute]
  /// Who may use it.
  package let access: Access
  /// Where it is carried out.
  package let kind: Kind
  /// What it does, in one sentence.
  package let summary: String
  /// What it looks like.
  package let examples: [Example]
  /// Turns checked arguments into the command.
  package let command: @Sendable (Arguments) throws(Refusal) -> Command

  /// Declares a verb.
  package init(
    words: String, operands: [Operand] = [], attributes: [Attribute] = [], access: Access = .app, kind: Kind,
    summary: String, examples: [Example], command: @escaping @Sendable (Arguments) throws(Refusal) -> Command
  ) {
    self.words = words
    self.operands = operands
    self.attributes = attributes
    self.access = access
    self.kind = kind
    self.summary = summary
    self.examples = examples
    self.command = command
  }

  /// The verb with its operands and attributes, as the manual writes it: `get uuid [count=N] [version=4|7]`.
  package var usage: String {
    let operands = operands.map { operand in
      let name = operand.name + (operand.repeats ? "…" : "")
      return operand.isOptional ? "[\(name)]" : name
    }
    return ([words] + operands + attributes.map { "[\($0.name)=\($0.value)]" }).joined(separator: " ")
  }
}
