package import IdentityCore

/// The operands and attributes of a request, counted and named as its verb declares them.
package struct Arguments: Sendable {
  /// The words of the verb, for error texts.
  package let verb: String
  /// Whether no error text may repeat a word of the request.
  private let isPrivate: Bool
  /// The positional words behind the verb.
  package let operands: [Text]
  private let attributes: [(name: Text, value: Text)]
  private let secrets: [(name: Text, value: SealedSecret)]

  /// Takes the words behind the verb.
  ///
  /// - Parameters:
  ///   - count: how many positional words the verb itself took.
  ///   - intake: seals the secrets, once nothing is wrong with any name.
  /// - Throws: `badArgument` for an operand too many or too few, and an attribute unknown, missing or given twice; what
  ///   is wrong with a secret.
  init(
    _ parser: borrowing WordParser, behind count: Int, of verb: Verb, in line: borrowing Span<UInt8>,
    secrets intake: any SecretIntake
  ) throws(Refusal) {
    self.verb = verb.words
    isPrivate = verb.isPrivate
    var operands: [Text] = []
    var attributes: [(name: Text, value: Text)] = []
    var secretWords: [(name: Text, word: WordParser.Word)] = []
    operands.reserveCapacity(verb.operands.count)
    var position = 0
    for word in parser.words {
      if !word.isAttribute {
        position += 1
        guard position > count else { continue }
        guard operands.count < verb.operands.count || verb.operands.last?.repeats == true else {
          throw verb.refusal(of: .unexpectedOperand(parser.text(word, in: line)))
        }
        operands.append(parser.text(word, in: line))
        continue
      }
      let name = parser.name(word, in: line)
      guard let declared = verb.attributes.first(where: { $0.isMeant(by: name.bytes) }) else {
        throw verb.refusal(of: .unknownAttribute(name))
      }
      try verb.check(name, against: declared)
      guard !attributes.contains(where: { $0.name == name }), !secretWords.contains(where: { $0.name == name }) else {
        throw .badArgument(verb: verb.words, .repeatedAttribute(name))
      }
      if declared.isSecret {
        secretWords.append((name, word))
      } else {
        attributes.append((name, parser.text(word, in: line)))
      }
    }
    if let missing = verb.operands.dropFirst(operands.count).first(where: { !$0.isOptional }) {
      throw .badArgument(verb: verb.words, .missingOperand(missing.name))
    }
    for place in verb.attributes.indices where verb.attributes[place].isRequired {
      let required = verb.attributes[place]
      let isGiven =
        attributes.contains { required.isMeant(by: $0.name.bytes) }
        || secretWords.contains { required.isMeant(by: $0.name.bytes) }
      guard isGiven else { throw .badArgument(verb: verb.words, .missingAttribute(required.name)) }
    }
    var secrets: [(name: Text, value: SealedSecret)] = []
    for (name, word) in secretWords {
      secrets.append((name, try Self.seal(word, named: name, of: verb, parser, in: line, intake)))
    }
    self.operands = operands
    self.attributes = attributes
    self.secrets = secrets
  }

  /// Has a secret sealed straight from the line, so that no copy of it is left behind here.
  private static func seal(
    _ word: WordParser.Word, named name: Text, of verb: Verb, _ parser: borrowing WordParser,
    in line: borrowing Span<UInt8>, _ intake: any SecretIntake
  ) throws(Refusal) -> SealedSecret {
    var fits = true
    let result: Result<SealedSecret, SecretFault>
    do throws(SecretFault) {
      result = .success(
        try intake.seal { memory in
          guard let length = parser.copyValue(of: word, in: line, to: &memory) else {
            fits = false
            return 0
          }
          return length
        })
    } catch {
      result = .failure(error)
    }
    // Of a part that was sealed in its place nothing is said.
    switch fits ? result : .failure(.tooLong) {
    case .success(let secret): return secret
    case .failure(.notBase64): throw .badArgument(verb: verb.words, .notBase64(name: name.description))
    case .failure(.tooLong): throw .limit("a secret is at most \(Bound.secretLength) bytes")
    }
  }

  /// The value of an attribute, or nil where it is not given.
  package subscript(_ name: String) -> Text? {
    attributes.first { name.utf8.elementsEqual($0.name.bytes) }?.value
  }

  /// The value of an attribute that its verb declares as required.
  package func required(_ name: String) throws(Refusal) -> Text {
    guard let text = self[name] else { throw .badArgument(verb: verb, .missingAttribute(name)) }
    return text
  }

  /// A secret as it was sealed when the line was read, or nil where it is not given.
  package func secret(_ name: String) -> SealedSecret? {
    secrets.first { name.utf8.elementsEqual($0.name.bytes) }?.value
  }

  /// A secret that its verb declares as required.
  package func requiredSecret(_ name: String) throws(Refusal) -> SealedSecret {
    guard let secret = secret(name) else { throw .badArgument(verb: verb, .missingAttribute(name)) }
    return secret
  }

  /// A whole number in decimal digits.
  ///
  /// - Returns: nil where the attribute is not given.
  /// - Throws: `badArgument` for anything but digits, or a number outside of the range.
  package func number(_ name: String, in range: ClosedRange<Int>) throws(Refusal) -> Int? {
    guard let text = self[name] else { return nil }
    guard let number = Self.decimal(text), range.contains(number) else {
      throw notAllowed(name, text, "\(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }

  /// What decimal digits say; nil for anything but digits, and for a number that is too large.
  static func decimal(_ text: Text) -> Int? {
    let isDecimal = text.bytes.allSatisfy { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
    return isDecimal ? Int(text.description) : nil
  }

  /// `name=yes` or `name=no`; no where the attribute is not given.
  package func flag(_ name: String) throws(Refusal) -> Bool {
    switch self[name] {
    case nil, "no"?: return false
    case "yes"?: return true
    case let text?: throw notAllowed(name, text, "yes, no")
    }
  }

  /// One of the names of a kind, as an operand or a value has it.
  package func choice<Choice: RawRepresentable & CaseIterable>(_ text: Text, named name: String) throws(Refusal)
    -> Choice where Choice.RawValue == String
  {
    // Byte by byte: Swift's own lower case of U+212A is a 'k'.
    guard let choice = Choice(rawValue: String(decoding: text.bytes.map(lowercased), as: UTF8.self)) else {
      throw notAllowed(name, text, Choice.allCases.map(\.rawValue).joined(separator: ", "))
    }
    return choice
  }

  /// The operand at a place as a UUID.
  ///
  /// - Throws: `invalidUUID` for anything else, and for what is nobody's identifier.
  package func uuid(_ place: Int) throws(Refusal) -> UUID {
    guard let uuid = UUID(operands[place]), !uuid.isPlaceholder else { throw .invalidUUID(operands[place]) }
    return uuid
  }

  /// A name that is stored or shown: at least one byte, and at most ``Bound/nameLength``.
  package func name(_ text: Text, named operand: String) throws(Refusal) -> Text {
    guard (1...Bound.nameLength).contains(text.bytes.count) else {
      throw notAllowed(operand, text, "1 to \(Bound.nameLength) bytes")
    }
    return text
  }

  /// Such a name where an attribute has one; nil where it is not given or empty.
  package func optional(_ attribute: String) throws(Refusal) -> Text? {
    guard let given = self[attribute], !given.isEmpty else { return nil }
    return try name(given, named: attribute)
  }

  /// A moment as RFC 3339 has it, in the form the daemon writes.
  ///
  /// - Returns: nil where the attribute is not given.
  package func time(_ name: String) throws(Refusal) -> Timestamp? {
    guard let text = self[name] else { return nil }
    guard let time = Timestamp(parsing: text) else {
      throw notAllowed(name, text, "a time like 2026-11-21T08:39:12.345Z")
    }
    return time
  }

  /// The refusal of a value that is not among the allowed ones. Where the verb takes a token, that may be it, in the
  /// wrong place: then it is not repeated.
  package func notAllowed(_ name: String, _ value: Text, _ allowed: String) -> Refusal {
    if isPrivate { return combination("\(name) cannot be what is given; allowed: \(allowed)") }
    return .badArgument(verb: verb, .notAllowed(name: name, value: value, allowed: allowed))
  }

  /// The refusal of arguments that do not go together, or where one of several is needed.
  package func combination(_ what: String) -> Refusal { .badArgument(verb: verb, .combination(what)) }
}

// MARK: - Attributes whose names begin alike

extension Arguments {
  /// `attr.NAME=V`, as often as it is given: the names without what they begin with.
  ///
  /// - Throws: `limit` where there are more than an item may have, or one is too long for an item.
  package func named(_ beginning: String) throws(Refusal) -> [Item.Attribute] {
    var found: [Item.Attribute] = []
    for (name, value) in attributes where name.bytes.starts(with: beginning.utf8) {
      guard found.count < Bound.attributesPerItem else {
        throw .limit("an item has at most \(Bound.attributesPerItem) attributes")
      }
      // The name has no byte that is not allowed in one, and is not long: it needs no quotes.
      found.append(
        Item.Attribute(
          name: Text(trusted: Array(name.bytes.dropFirst(beginning.utf8.count))),
          value: try itemText(value, named: name.description)))
    }
    return found
  }

  /// What is said of an item, of at most ``Bound/itemTextLength`` bytes.
  package func itemText(_ text: Text, named name: String) throws(Refusal) -> Text {
    guard text.bytes.count <= Bound.itemTextLength else {
      throw .limit("\(name) is at most \(Bound.itemTextLength) bytes")
    }
    return text
  }
}

extension Verb {
  /// The refusal of a word that the verb does not take.
  ///
  /// Where the verb takes a secret or a token, the word may be that, which a client forgot to quote or to name: then it
  /// is not repeated.
  fileprivate func refusal(of fault: @autoclosure () -> ArgumentFault) -> Refusal {
    let takesSecret = attributes.contains(where: \.isSecret) || isPrivate
    return .badArgument(verb: words, takesSecret ? .unexpectedWord(usage: usage) : fault())
  }

  /// Checks the part of an attribute's name that the client chooses.
  fileprivate func check(_ name: Text, against declared: Attribute) throws(Refusal) {
    guard let suffix = declared.suffix else { return }
    let chosen = Array(name.bytes.dropFirst(declared.name.utf8.count))
    guard (1...Bound.attributeNameLength).contains(chosen.count) else {
      throw .badArgument(
        verb: words,
        .notAllowed(
          name: declared.name + suffix, value: Text(trusted: chosen),
          allowed: "1 to \(Bound.attributeNameLength) bytes"))
    }
  }
}
