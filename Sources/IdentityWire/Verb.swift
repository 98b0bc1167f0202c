package import IdentityCore

/// One row of the verb table: all there is to know of a verb but its rule.
///
/// Parsing, `help`, the manual, the client and the tests all read it. Each is one reference, because it is looked at with
/// every request.
package final class Verb: Sendable {
  /// A positional word behind the verb.
  package struct Operand: Sendable {
    /// As the manual writes it, in capitals.
    package let name: String
    /// Whether it may be left out.
    package let isOptional: Bool
    /// Whether any number of words may follow in its place.
    package let repeats: Bool
    /// Whether no error text may repeat it.
    package let isPrivate: Bool

    private init(_ name: String, isOptional: Bool = false, repeats: Bool = false, isPrivate: Bool = false) {
      self.name = name
      self.isOptional = isOptional
      self.repeats = repeats
      self.isPrivate = isPrivate
    }

    /// A word that has to be there.
    package static func required(_ name: String) -> Operand { Operand(name) }
    /// A word that has to be there, and that no error text repeats.
    package static func `private`(_ name: String) -> Operand { Operand(name, isPrivate: true) }
    /// A word that may be left out; no required one comes behind it.
    package static func optional(_ name: String) -> Operand { Operand(name, isOptional: true) }
    /// Any number of words, none included.
    package static func any(_ name: String) -> Operand { Operand(name, isOptional: true, repeats: true) }
  }

  /// A `name=value` that the verb takes.
  package struct Attribute: Sendable {
    /// In lower case; where ``suffix`` follows, only how its name begins.
    package let name: String
    /// The rest of the name, which the client chooses, as the manual writes it; nil where ``name`` is all of it.
    package let suffix: String?
    /// What may stand behind the `=`, as the manual writes it.
    package let value: String
    /// Whether it has to be there.
    package let isRequired: Bool
    /// Whether the value is a secret in Base64: it is sealed as soon as it is read, and no error text repeats it.
    package let isSecret: Bool

    /// Declares an attribute.
    package init(_ name: String, _ value: String, isRequired: Bool = false, isSecret: Bool = false) {
      self.init(name: name, suffix: nil, value: value, isRequired: isRequired, isSecret: isSecret)
    }

    /// Takes everything as it is.
    private init(name: String, suffix: String?, value: String, isRequired: Bool, isSecret: Bool) {
      self.name = name
      self.suffix = suffix
      self.value = value
      self.isRequired = isRequired
      self.isSecret = isSecret
    }

    /// Declares attributes whose names begin alike: `attr.NAME=V`, any number of them.
    package static func prefixed(_ name: String, _ suffix: String, _ value: String) -> Attribute {
      Attribute(name: name, suffix: suffix, value: value, isRequired: false, isSecret: false)
    }

    /// Declares an attribute that has to be there.
    package static func required(_ name: String, _ value: String) -> Attribute {
      Attribute(name, value, isRequired: true)
    }

    /// Declares a secret in Base64.
    package static func secret(_ name: String, isRequired: Bool = true) -> Attribute {
      Attribute(name, "BASE64", isRequired: isRequired, isSecret: true)
    }

    /// Whether an attribute of this name, in lower case, is meant.
    package func isMeant(by name: some Sequence<UInt8>) -> Bool {
      suffix == nil ? self.name.utf8.elementsEqual(name) : name.starts(with: self.name.utf8)
    }

    /// As the manual writes it: `[count=N]`, `service=S`, `[attr.NAME=V]…`.
    package var usage: String {
      let plain = "\(name)\(suffix ?? "")=\(value)"
      return (isRequired ? plain : "[\(plain)]") + (suffix == nil ? "" : "…")
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
  /// Whether no error text may repeat a word of the request.
  let isPrivate: Bool
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
    isPrivate = operands.contains(where: \.isPrivate)
  }

  /// The verb with its operands and attributes, as the manual writes it: `get uuid [count=N] [version=4|7]`.
  package var usage: String { Self.usage(of: words, operands, attributes) }

  /// Words with operands and attributes, as the manual writes them.
  package static func usage(of words: String, _ operands: [Operand], _ attributes: [Attribute]) -> String {
    let operands = operands.map { operand in
      let name = operand.name + (operand.repeats ? "…" : "")
      return operand.isOptional ? "[\(name)]" : name
    }
    return ([words] + operands + attributes.map(\.usage)).joined(separator: " ")
  }
}
