package import IdentityCore

/// The operands and attributes of a request, counted and named as its verb declares them.
package struct Arguments: Sendable {
  /// The words of the verb, for error texts.
  package let verb: String
  /// The positional words behind the verb.
  package let operands: [Text]
  private let attributes: [(name: Text, value: Text)]

  /// Takes the words behind the verb.
  ///
  /// - Parameters:
  ///   - count: how many positional words the verb itself took.
  /// - Throws: `badArgument` for an operand too many or too few, and an attribute unknown or given twice.
  init(_ parser: borrowing WordParser, behind count: Int, of verb: Verb, in line: borrowing Span<UInt8>) throws(Refusal)
  {
    self.verb = verb.words
    var operands: [Text] = []
    var attributes: [(name: Text, value: Text)] = []
    var position = 0
    for word in parser.words {
      if !word.isAttribute {
        position += 1
        if position > count { operands.append(parser.text(word, in: line)) }
        continue
      }
      let name = parser.name(word, in: line)
      guard verb.attributes.contains(where: { $0.name.utf8.elementsEqual(name.bytes) }) else {
        throw .badArgument(verb: verb.words, .unknownAttribute(name))
      }
      guard !attributes.contains(where: { $0.name == name }) else {
        throw .badArgument(verb: verb.words, .repeatedAttribute(name))
      }
      attributes.append((name, parser.text(word, in: line)))
    }
    let required = verb.operands.filter { !$0.isOptional }
    if operands.count < required.count {
      throw .badArgument(verb: verb.words, .missingOperand(required[operands.count].name))
    }
    if operands.count > verb.operands.count, verb.operands.last?.repeats != true {
      throw .badArgument(verb: verb.words, .unexpectedOperand(operands[verb.operands.count]))
    }
    self.operands = operands
    self.attributes = attributes
  }

  /// The value of an attribute, or nil where it is not given.
  package subscript(_ name: String) -> Text? {
    attributes.first { name.utf8.elementsEqual($0.name.bytes) }?.value
  }

  /// A whole number in decimal digits.
  ///
  /// - Returns: nil where the attribute is not given.
  /// - Throws: `badArgument` for anything but digits, or a number outside of the range.
  package func number(_ name: String, in range: ClosedRange<Int>) throws(Refusal) -> Int? {
    guard let text = self[name] else { return nil }
    let isDecimal = text.bytes.allSatisfy { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
    guard isDecimal, let number = Int(text.description), range.contains(number) else {
      throw notAllowed(name, text, "\(range.lowerBound) to \(range.upperBound)")
    }
    return number
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

  /// The refusal of a value that is not among the allowed ones.
  package func notAllowed(_ name: String, _ value: Text, _ allowed: String) -> Refusal {
    .badArgument(verb: verb, .notAllowed(name: name, value: value, allowed: allowed))
  }
}
