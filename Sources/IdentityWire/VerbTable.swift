package import IdentityCore

/// A hash index that finds the verb of a request without copying any bytes.
package struct VerbTable: Sendable {
  /// The verbs by subject, in the order of the manual.
  package static let families: [(name: String, verbs: [Verb])] = [
    ("daemon", Verb.daemon), ("identifiers", Verb.identifiers), ("apps", Verb.apps), ("devices", Verb.devices),
    ("fleet", Verb.fleet), ("items", Verb.items), ("versions", Verb.versions), ("tokens", Verb.tokens),
    ("proofs", Verb.proofs), ("events", Verb.events),
    ("store", Verb.store),
  ]

  /// All verbs, in the order of the manual.
  package static let verbs: [Verb] = families.flatMap(\.verbs)

  /// The index of the family in ``families``, for each verb in ``verbs``.
  package static let familyPlaces = families.indices.flatMap { index in families[index].verbs.map { _ in index } }

  /// First words that take LEVEL as their operand (identityd-protocol(7), section IDENTIFIERS). An unknown level is a
  /// bad argument of the verb, not an unknown verb.
  private static let levelVerbs = ["get", "migrate"]

  /// Indices into ``verbs`` in a hash table with open addressing, which is at most a quarter full.
  private let slots: [Int]
  /// The words of each verb in ``verbs`` as bytes, which are compared faster than a text.
  private let spellings: [[UInt8]]

  /// Builds the index.
  package init() {
    var count = 64
    while count < Self.verbs.count * 4 { count *= 2 }
    var slots = [Int](repeating: -1, count: count)
    for (index, verb) in Self.verbs.enumerated() {
      var slot = verb.words.utf8.reduce(Self.seed, Self.mixed) & (count - 1)
      while slots[slot] >= 0 { slot = (slot + 1) & (count - 1) }
      slots[slot] = index
    }
    self.slots = slots
    spellings = Self.verbs.map { Array($0.words.utf8) }
  }

  /// Makes a command from a parsed line.
  ///
  /// - Parameters:
  ///   - parser: holds the words of `line`.
  ///   - line: the line without its line end.
  ///   - peer: the peer that sent the line.
  ///   - secrets: encrypts the secrets in the line for the command.
  /// - Throws: `unknownVerb`, `badArgument`, `limit`, `denied` for a verb that requires an admin, or `syntax` for a
  ///   line without a positional word.
  package func command(
    _ parser: borrowing WordParser, in line: borrowing Span<UInt8>, by peer: Peer, secrets: any SecretIntake
  ) throws(Refusal) -> Command {
    try command(of: try match(parser, in: line), parser, in: line, by: peer, secrets: secrets)
  }

  /// The verb at the beginning of a line.
  package struct Match: Sendable {
    /// The index of the verb in ``VerbTable/verbs``.
    package let index: Int
    /// The number of positional words that belong to the verb.
    let count: Int
  }

  /// Makes a command of a known verb from a line. Parameters and errors are those of ``command(_:in:by:secrets:)``.
  package func command(
    of match: Match, _ parser: borrowing WordParser, in line: borrowing Span<UInt8>, by peer: Peer,
    secrets: any SecretIntake
  ) throws(Refusal) -> Command {
    let verb = Self.verbs[match.index]
    guard verb.access != .admin || peer.isAdmin else {
      throw .denied(app: peer.app, userID: peer.userID, grant: "admin rights for '\(verb.words)'")
    }
    return try verb.command(
      try Arguments(parser, behind: match.count, of: verb.declaration, in: line, secrets: secrets))
  }

  /// Finds the verb at the beginning of a line. The longest match wins.
  ///
  /// - Throws: `unknownVerb`, `badArgument` for an unknown level, or `syntax` for a line without a positional word.
  package func match(_ parser: borrowing WordParser, in line: borrowing Span<UInt8>) throws(Refusal) -> Match {
    var first: WordParser.Word?
    for word in parser.words where !word.isAttribute {
      guard let head = first else {
        first = word
        continue
      }
      if let index = lookUp(head, word, in: line) { return Match(index: index, count: 2) }
      break
    }
    guard let first else { throw .syntax(.noVerb) }
    if let index = lookUp(first, nil, in: line) { return Match(index: index, count: 1) }
    throw unknown(parser, beginningWith: first, in: line)
  }

  private func lookUp(_ first: WordParser.Word, _ second: WordParser.Word?, in line: borrowing Span<UInt8>) -> Int? {
    var hash = Self.seed
    for index in first.value { hash = Self.mixed(hash, lowercased(line[index])) }
    if let second {
      hash = Self.mixed(hash, UInt8(ascii: " "))
      for index in second.value { hash = Self.mixed(hash, lowercased(line[index])) }
    }
    var slot = hash & (slots.count - 1)
    while slots[slot] >= 0 {
      let index = slots[slot]
      if matches(spellings[index], first, second, in: line) { return index }
      slot = (slot + 1) & (slots.count - 1)
    }
    return nil
  }

  private func matches(
    _ words: [UInt8], _ first: WordParser.Word, _ second: WordParser.Word?, in line: borrowing Span<UInt8>
  ) -> Bool {
    let end = first.value.count
    guard words.count == end + (second.map { $0.value.count + 1 } ?? 0) else { return false }
    for offset in 0..<end where words[offset] != lowercased(line[first.value.lowerBound + offset]) { return false }
    guard let second else { return true }
    guard words[end] == UInt8(ascii: " ") else { return false }
    for offset in 0..<second.value.count
    where words[end + 1 + offset] != lowercased(line[second.value.lowerBound + offset]) { return false }
    return true
  }

  private func unknown(
    _ parser: borrowing WordParser, beginningWith first: WordParser.Word, in line: borrowing Span<UInt8>
  ) -> Refusal {
    // A word that is longer than any verb may be a misplaced secret, so not even a copy of the word is made.
    let words = parser.words.filter { !$0.isAttribute }.prefix(2)
    let operands = words.map { $0.value.count > Bound.shownWordLength ? "…" : parser.text($0, in: line) }
    for head in Self.levelVerbs where matches(Array(head.utf8), first, nil, in: line) {
      let levels = Self.verbs.map(\.words).filter { $0.hasPrefix(head + " ") }.map { $0.dropFirst(head.count + 1) }
      guard operands.count > 1 else { return .badArgument(verb: head, .missingOperand("LEVEL")) }
      return .badArgument(
        verb: head, .notAllowed(name: "LEVEL", value: operands[1], allowed: levels.joined(separator: ", ")))
    }
    return .unknownVerb(operands[0])
  }

  /// FNV-1a takes few instructions per byte. The table is fixed, so nobody can choose collisions.
  private static let seed = 0x4bf2_9ce4_8422_2325
  private static func mixed(_ hash: Int, _ byte: UInt8) -> Int { (hash ^ Int(byte)) &* 0x100_0000_01b3 & .max }
}

extension VerbTable {
  /// Returns the verb of a request from its words, or nil if there is no such verb.
  package static func verb(of words: [String]) -> Verb? {
    verb(named: VerbName(words.filter { !WordEncoder.looksLikeAttribute(Array($0.utf8)) }))
  }

  /// Returns the verb with this name, or nil if there is none. Two words come before one.
  package static func verb(named name: VerbName) -> Verb? {
    verbs.first { $0.words == name.both } ?? verbs.first { $0.words == name.first }
  }

  /// Answers `help [VERB]` with a row for each verb.
  ///
  /// - Throws: `unknownVerb` if no verb begins with the words.
  package static func help(_ words: [Text]) throws(Refusal) -> Reply {
    try Reply.help(words, of: verbs.map { ($0.declaration, $0.access) })
  }
}
