package import IdentityCore

/// A row of the verb table: everything about a verb but its rule.
///
/// Parsing, `help`, the manual, the client and the tests all use the table. Every request looks at a verb, so a verb is
/// a class, which costs one reference.
package final class Verb: Sendable {
  /// A positional word after the verb.
  package struct Operand: Sendable {
    /// The name in capitals, as the manual writes it.
    package let name: String
    /// Whether the operand may be left out.
    package let isOptional: Bool
    /// Whether the operand may be given any number of times.
    package let repeats: Bool
    /// Whether error texts must not repeat the operand.
    package let isPrivate: Bool

    private init(_ name: String, isOptional: Bool = false, repeats: Bool = false, isPrivate: Bool = false) {
      self.name = name
      self.isOptional = isOptional
      self.repeats = repeats
      self.isPrivate = isPrivate
    }

    /// Declares a required operand.
    package static func required(_ name: String) -> Operand { Operand(name) }
    /// Declares a required operand that error texts must not repeat.
    package static func `private`(_ name: String) -> Operand { Operand(name, isPrivate: true) }
    /// Declares an operand that may be left out. No required operand may follow.
    package static func optional(_ name: String) -> Operand { Operand(name, isOptional: true) }
    /// Declares an operand that may be given any number of times, or left out.
    package static func any(_ name: String) -> Operand { Operand(name, isOptional: true, repeats: true) }
  }

  /// A `name=value` that the verb takes.
  package struct Attribute: Sendable {
    /// The name in lower case. If there is a ``suffix``, only the beginning of the name.
    package let name: String
    /// The end of the name, which the client chooses, as the manual writes it. Nil if ``name`` is the whole name.
    package let suffix: String?
    /// The allowed values, as the manual writes them.
    package let value: String
    /// Whether the attribute is required.
    package let isRequired: Bool
    /// Whether the value is a secret in Base64. A secret is encrypted as soon as it is read, and no error text repeats it.
    package let isSecret: Bool
    /// Whether the value is `yes` or `no`, while the attribute of the same name of another verb is a secret. The request
    /// may be meant for that verb, so no copy of another value is made, and no error text repeats it.
    package var asksForSecrets = false

    /// Declares an attribute.
    package init(_ name: String, _ value: String, isRequired: Bool = false, isSecret: Bool = false) {
      self.init(name: name, suffix: nil, value: value, isRequired: isRequired, isSecret: isSecret)
    }

    private init(name: String, suffix: String?, value: String, isRequired: Bool, isSecret: Bool) {
      self.name = name
      self.suffix = suffix
      self.value = value
      self.isRequired = isRequired
      self.isSecret = isSecret
    }

    /// Declares any number of attributes whose names begin with the same prefix, such as `attr.NAME=V`.
    package static func prefixed(_ name: String, _ suffix: String, _ value: String) -> Attribute {
      Attribute(name: name, suffix: suffix, value: value, isRequired: false, isSecret: false)
    }

    /// Declares a required attribute.
    package static func required(_ name: String, _ value: String) -> Attribute {
      Attribute(name, value, isRequired: true)
    }

    /// Declares a secret in Base64.
    package static func secret(_ name: String, isRequired: Bool = true) -> Attribute {
      Attribute(name, "BASE64", isRequired: isRequired, isSecret: true)
    }

    /// Declares a flag that asks for the secrets that other verbs take under this name.
    package static func secretsFlag(_ name: String) -> Attribute {
      var flag = Attribute(name, "yes")
      flag.asksForSecrets = true
      return flag
    }

    /// Returns whether this declaration applies to an attribute with the given name, in lower case.
    package func isMeant(by name: some Sequence<UInt8>) -> Bool {
      suffix == nil ? self.name.utf8.elementsEqual(name) : name.starts(with: self.name.utf8)
    }

    /// The attribute as the manual writes it: `[count=N]`, `service=S`, `[attr.NAME=V]…`.
    package var usage: String {
      let plain = "\(name)\(suffix ?? "")=\(value)"
      return (isRequired ? plain : "[\(plain)]") + (suffix == nil ? "" : "…")
    }
  }

  /// The peers that may use a verb.
  package enum Access: String, Sendable {
    /// Every peer, on behalf of its own app.
    case app
    /// Admins: root, members of `AdminGroup=` and the owner of a daemon of his own, unless contained.
    case admin
    /// Admins, and apps with `Rights=fleet` in their manifests. The rule of the verb checks this, by the present manifest.
    case fleet
  }

  /// The loss that a verb causes for good. It decides whether the client asks before it sends the verb.
  package enum Loss: Sendable {
    /// The store keeps everything: the client never asks.
    case nothing
    /// One thing ends or is replaced, which the request names in full: the client never asks.
    case named
    /// More can be lost than the request names. The client asks if the dry run shows several things, or one of another
    /// app. The sentence tells the loss.
    case askIfMore(String)
    /// The request names nothing that is lost. The client asks if the dry run shows anything. The sentence tells the loss.
    case askIfAny(String)
    /// The client always asks. The sentence tells the loss.
    case ask(String)

    /// The sentence that the client shows before it asks. Nil if it never asks.
    package var consequence: String? {
      switch self {
      case .nothing, .named: nil
      case .askIfMore(let text), .askIfAny(let text), .ask(let text): text
      }
    }
  }

  /// A request and its answer, shown in the manual and run by the tests.
  ///
  /// In the answer, `<uuid>`, `<time>`, `<number>` and `<word>` each stand for any such word. `…` stands for any
  /// further words, and as a line of its own for any further rows.
  package struct Example: Sendable {
    /// The request line, without its line end.
    package let request: String
    /// The lines of the answer.
    package let reply: [String]

    /// Declares an example.
    package init(_ request: String, _ reply: String...) {
      self.request = request
      self.reply = reply
    }
  }

  /// Everything about the verb but its access and its command.
  package let declaration: Declaration
  /// The peers that may use the verb.
  package let access: Access
  /// Makes the command from checked arguments.
  package let command: @Sendable (Arguments) throws(Refusal) -> Command

  /// Declares a verb.
  package init(
    words: String, operands: [Operand] = [], attributes: [Attribute] = [], access: Access = .app,
    summary: String, answer: Answer, loss: Loss, examples: [Example],
    command: @escaping @Sendable (Arguments) throws(Refusal) -> Command
  ) {
    declaration = Declaration(
      words: words, operands: operands, attributes: attributes, summary: summary, answer: answer, loss: loss,
      examples: examples)
    self.access = access
    self.command = command
  }

  /// The words of the verb; see ``Declaration/words``.
  package var words: String { declaration.words }
  /// The positional words after the verb, in order.
  package var operands: [Operand] { declaration.operands }
  /// The attributes that the verb takes, in any order.
  package var attributes: [Attribute] { declaration.attributes }
  /// The effect of the verb, in one sentence.
  package var summary: String { declaration.summary }
  /// The content of the answer.
  package var answer: Answer { declaration.answer }
  /// The loss that the verb causes for good.
  package var loss: Loss { declaration.loss }
  /// Requests with their answers.
  package var examples: [Example] { declaration.examples }
  /// The verb with its operands and attributes; see ``Declaration/usage``.
  package var usage: String { declaration.usage }

  /// Returns words with operands and attributes, as the manual writes them.
  package static func usage(of words: String, _ operands: [Operand], _ attributes: [Attribute]) -> String {
    let operands = operands.map { operand in
      let name = operand.name + (operand.repeats ? "…" : "")
      return operand.isOptional ? "[\(name)]" : name
    }
    return ([words] + operands + attributes.map(\.usage)).joined(separator: " ")
  }
}
