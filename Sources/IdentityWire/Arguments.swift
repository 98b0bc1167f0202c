package import IdentityCore

/// The operands and attributes of a request, checked against the declaration of the verb.
package struct Arguments: Sendable {
  /// The words of the verb, for error texts.
  package let verb: String
  /// Whether error texts must not repeat any word of the request.
  private let isPrivate: Bool
  /// The positional words after the verb.
  package let operands: [Text]
  private let attributes: [(name: Text, value: Text)]
  private var secrets: [(name: Text, value: SealedSecret)] = []

  /// Checks the words after the verb and encrypts the secrets among them.
  ///
  /// - Parameters:
  ///   - count: the number of positional words that belong to the verb.
  ///   - intake: encrypts the secrets, after all names have been checked.
  /// - Throws: `badArgument` for a missing or surplus operand, and for an unknown, missing or repeated attribute.
  ///   Also the refusal of a secret.
  init(
    _ parser: borrowing WordParser, behind count: Int, of verb: Verb.Declaration, in line: borrowing Span<UInt8>,
    secrets intake: any SecretIntake
  ) throws(Refusal) {
    var words: [SecretWord] = []
    try self.init(parser, behind: count, of: verb, in: line, leaving: &words)
    for (name, word) in words {
      secrets.append((name, try Self.encrypt(word, named: name, of: verb, parser, in: line, intake)))
    }
  }

  /// The name of a secret, and its word in the line.
  package typealias SecretWord = (name: Text, word: WordParser.Word)

  /// Checks the words after the verb, and leaves the secrets among them in the line.
  ///
  /// - Parameters:
  ///   - count: the number of positional words that belong to the verb.
  ///   - secretWords: gets the secrets.
  /// - Throws: `badArgument` for a missing or surplus operand, and for an unknown, missing or repeated attribute.
  package init(
    _ parser: borrowing WordParser, behind count: Int, of verb: Verb.Declaration, in line: borrowing Span<UInt8>,
    leaving secretWords: inout [SecretWord]
  ) throws(Refusal) {
    self.verb = verb.words
    isPrivate = verb.isPrivate
    var operands: [Text] = []
    var attributes: [(name: Text, value: Text)] = []
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
      if declared.asksForSecrets, !Self.isYesOrNo(line.extracting(word.value)) {
        throw .badArgument(
          verb: verb.words, .combination("\(declared.name) has an invalid value; allowed: yes, no"))
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
    for index in verb.attributes.indices where verb.attributes[index].isRequired {
      let required = verb.attributes[index]
      let isGiven =
        attributes.contains { required.isMeant(by: $0.name.bytes) }
        || secretWords.contains { required.isMeant(by: $0.name.bytes) }
      guard isGiven else { throw .badArgument(verb: verb.words, .missingAttribute(required.name)) }
    }
    self.operands = operands
    self.attributes = attributes
  }

  private static func isYesOrNo(_ value: borrowing Span<UInt8>) -> Bool {
    switch value.count {
    case 2: value[0] == UInt8(ascii: "n") && value[1] == UInt8(ascii: "o")
    case 3: value[0] == UInt8(ascii: "y") && value[1] == UInt8(ascii: "e") && value[2] == UInt8(ascii: "s")
    default: false
    }
  }

  /// Encrypts a secret directly from the line, so that this module keeps no copy of the secret.
  private static func encrypt(
    _ word: WordParser.Word, named name: Text, of verb: Verb.Declaration, _ parser: borrowing WordParser,
    in line: borrowing Span<UInt8>, _ intake: any SecretIntake
  ) throws(Refusal) -> SealedSecret {
    var fits = true
    let result: Result<SealedSecret, SecretFault>
    do throws(SecretFault) {
      result = .success(
        try intake.encrypt { memory in
          guard let length = parser.copyValue(of: word, in: line, to: &memory) else {
            fits = false
            return 0
          }
          return length
        })
    } catch {
      result = .failure(error)
    }
    // If the value did not fit, `result` is about an empty text and is ignored.
    switch fits ? result : .failure(.tooLong) {
    case .success(let secret): return secret
    case .failure(.notBase64): throw .badArgument(verb: verb.words, .notBase64(name: name.description))
    case .failure(.tooLong): throw .limit("a secret has at most \(Bound.secretLength) bytes")
    }
  }

  /// The value of an attribute, or nil if the attribute is not given.
  package subscript(_ name: String) -> Text? {
    attributes.first { name.utf8.elementsEqual($0.name.bytes) }?.value
  }

  /// Returns the value of an attribute that the verb declares as required.
  package func required(_ name: String) throws(Refusal) -> Text {
    guard let text = self[name] else { throw .badArgument(verb: verb, .missingAttribute(name)) }
    return text
  }

  /// Returns a secret, encrypted when the line was read, or nil if the attribute is not given.
  package func secret(_ name: String) -> SealedSecret? {
    secrets.first { name.utf8.elementsEqual($0.name.bytes) }?.value
  }

  /// Returns a secret that the verb declares as required.
  package func requiredSecret(_ name: String) throws(Refusal) -> SealedSecret {
    guard let secret = secret(name) else { throw .badArgument(verb: verb, .missingAttribute(name)) }
    return secret
  }

  /// Returns the value of an attribute as a whole number, written in decimal digits.
  ///
  /// - Returns: nil if the attribute is not given.
  /// - Throws: `badArgument` for anything but digits, or for a number outside the range.
  package func number(_ name: String, in range: ClosedRange<Int>) throws(Refusal) -> Int? {
    guard let text = self[name] else { return nil }
    guard let number = Self.decimal(text), range.contains(number) else {
      throw notAllowed(name, text, "\(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }

  /// Parses decimal digits. Returns nil for anything but digits, and for a number that is too large.
  static func decimal(_ text: Text) -> Int? {
    let isDecimal = text.bytes.allSatisfy { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
    return isDecimal ? Int(text.description) : nil
  }

  /// Returns the value of an attribute that is `yes` or `no`. A missing attribute counts as no.
  package func flag(_ name: String) throws(Refusal) -> Bool {
    switch self[name] {
    case nil, "no"?: return false
    case "yes"?: return true
    case let text?: throw notAllowed(name, text, "yes, no")
    }
  }

  /// Returns the member of an enumeration that an operand or a value names, in upper or lower case.
  package func choice<Choice: RawRepresentable & CaseIterable>(_ text: Text, named name: String) throws(Refusal)
    -> Choice where Choice.RawValue == String
  {
    // Byte by byte, because Swift's own `lowercased()` turns U+212A into a 'k'.
    guard let choice = Choice(rawValue: String(decoding: text.bytes.map(lowercased), as: UTF8.self)) else {
      throw notAllowed(name, text, Choice.allCases.map(\.rawValue).joined(separator: ", "))
    }
    return choice
  }

  /// Returns the operand at an index as a UUID.
  ///
  /// - Throws: `invalidUUID` for anything else, and for the all-zero and the all-one UUID, which are no identifiers.
  package func uuid(_ index: Int) throws(Refusal) -> UUID {
    guard let uuid = UUID(operands[index]), !uuid.isPlaceholder else { throw .invalidUUID(operands[index]) }
    return uuid
  }

  /// Returns the value of an attribute as a UUID.
  ///
  /// - Returns: nil if the attribute is not given.
  /// - Throws: `invalidUUID` for anything else.
  package func uuid(named name: String) throws(Refusal) -> UUID? {
    guard let text = self[name] else { return nil }
    guard let uuid = UUID(text) else { throw .invalidUUID(text) }
    return uuid
  }

  /// Returns a name that is stored or shown, after checking its length: 1 to ``Bound/nameLength`` bytes.
  package func name(_ text: Text, named operand: String) throws(Refusal) -> Text {
    guard (1...Bound.nameLength).contains(text.bytes.count) else {
      throw notAllowed(operand, text, "1 to \(Bound.nameLength) bytes")
    }
    return text
  }

  /// Returns the name in an optional attribute, or nil if the attribute is missing or empty.
  package func optional(_ attribute: String) throws(Refusal) -> Text? {
    guard let given = self[attribute], !given.isEmpty else { return nil }
    return try name(given, named: attribute)
  }

  /// Returns the value of an attribute as a time in RFC 3339 form, exactly as the daemon writes times.
  ///
  /// - Returns: nil if the attribute is not given.
  package func time(_ name: String) throws(Refusal) -> Timestamp? {
    guard let text = self[name] else { return nil }
    guard let time = Timestamp(parsing: text) else {
      throw notAllowed(name, text, "a time like 2026-11-21T08:39:12.345Z")
    }
    return time
  }

  /// Returns the refusal of a value that is not among the allowed ones.
  ///
  /// If the verb takes a token, the value may be that token in the wrong place, so the refusal
  /// does not repeat the value.
  package func notAllowed(_ name: String, _ value: Text, _ allowed: String) -> Refusal {
    if isPrivate { return combination("\(name) has an invalid value; allowed: \(allowed)") }
    return .badArgument(verb: verb, .notAllowed(name: name, value: value, allowed: allowed))
  }

  /// Returns the refusal of arguments that exclude each other, or of which at least one is required.
  package func combination(_ what: String) -> Refusal { .badArgument(verb: verb, .combination(what)) }
}

// MARK: - Attributes with a common prefix

extension Arguments {
  /// Returns the attributes whose names begin with a prefix, such as `attr.NAME=V`, without the prefix.
  ///
  /// - Throws: `limit` for more attributes than an item may have, or for a value that is too long for an item.
  package func named(_ beginning: String) throws(Refusal) -> [Item.Attribute] {
    var found: [Item.Attribute] = []
    for (name, value) in attributes where name.bytes.starts(with: beginning.utf8) {
      guard found.count < Bound.attributesPerItem else {
        throw .limit("an item has at most \(Bound.attributesPerItem) attributes")
      }
      // The parser limits the name to harmless bytes and `Verb.check` limits its length, so the error text needs
      // no quotes around the name.
      found.append(
        Item.Attribute(
          name: Text(trusted: Array(name.bytes.dropFirst(beginning.utf8.count))),
          value: try itemText(value, named: name.description)))
    }
    return found
  }

  /// Returns the attributes whose names begin with a prefix, without the prefix. Each value is a name.
  ///
  /// - Throws: `limit` for more attributes than `most`.
  package func words(_ beginning: String, atMost most: Int) throws(Refusal) -> [Event.Attribute] {
    let found = attributes.filter { $0.name.bytes.starts(with: beginning.utf8) }
    guard found.count <= most else { throw .limit("at most \(most) attributes \(beginning)NAME= are allowed") }
    var words: [Event.Attribute] = []
    for (name, value) in found {
      words.append(
        Event.Attribute(
          Text(trusted: Array(name.bytes.dropFirst(beginning.utf8.count))), try self.name(value, named: "\(name)")))
    }
    return words
  }

  /// Returns a label or an attribute's value, after checking its length: at most ``Bound/itemTextLength`` bytes.
  package func itemText(_ text: Text, named name: String) throws(Refusal) -> Text {
    guard text.bytes.count <= Bound.itemTextLength else {
      throw .limit("\(name) has at most \(Bound.itemTextLength) bytes")
    }
    return text
  }
}

extension Verb.Declaration {
  /// Returns the refusal of a word that the verb does not take.
  ///
  /// If the verb takes a secret or a token, the word may be that secret or token, which the client forgot to quote or
  /// to name. The refusal then does not repeat the word.
  fileprivate func refusal(of fault: @autoclosure () -> ArgumentFault) -> Refusal {
    let takesSecret = attributes.contains(where: \.isSecret) || isPrivate
    return .badArgument(verb: words, takesSecret ? .unexpectedWord(usage: usage) : fault())
  }

  /// Checks the part of an attribute's name that the client chooses.
  fileprivate func check(_ name: Text, against declared: Verb.Attribute) throws(Refusal) {
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
