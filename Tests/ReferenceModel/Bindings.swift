/// The values of a model's symbols. The first occurrence of a symbol binds its value.
package struct Bindings: Sendable {
  private var values: [String: String] = [:]
  private var symbols: [String: String] = [:]
  /// The latest model time that is bound, with its value. A later model time must not have an earlier value.
  private var latest: (place: Int64, value: String) = (0, "")

  package init() {}

  /// Whether an answer matches the expected lines. Of an error, only the code is compared.
  package mutating func matches(_ expected: [String], _ answer: [String]) -> Bool {
    expected.count == answer.count && zip(expected, answer).allSatisfy { matches($0, $1) }
  }

  /// Whether a line matches the expected line.
  package mutating func matches(_ expected: String, _ line: String) -> Bool {
    if expected.utf8.starts(with: "ERR ".utf8) { return line.utf8.starts(with: "\(expected) ".utf8) }
    // Compares bytes, as the daemon does: `String` equality would accept a different name that
    // is canonically equivalent.
    let (wanted, given) = (Self.words(expected), Self.words(line))
    guard wanted.count == given.count else { return false }
    return zip(wanted, given).allSatisfy { matches(word: $0, $1) }
  }

  /// Returns a line with each symbol replaced by its value. Nil if a symbol is not bound yet.
  package func line(_ text: String) -> String? {
    var words: [String] = []
    for word in text.split(separator: " ") {
      guard word.hasPrefix("<") else {
        words.append(String(word))
        continue
      }
      guard let value = values[String(word)] else { return nil }
      words.append(value)
    }
    return words.joined(separator: " ")
  }

  private static func words(_ line: String) -> [ArraySlice<UInt8>] {
    Array(line.utf8).split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
  }

  private mutating func matches(word wanted: ArraySlice<UInt8>, _ given: ArraySlice<UInt8>) -> Bool {
    guard let open = wanted.firstIndex(of: UInt8(ascii: "<")) else { return wanted == given }
    let name = wanted[..<open]
    guard given.starts(with: name) else { return false }
    let symbol = String(decoding: wanted[open...], as: UTF8.self)
    let value = String(decoding: given.dropFirst(name.count), as: UTF8.self)
    return symbol.utf8.dropFirst().first == UInt8(ascii: "t") ? bind(time: symbol, value) : bind(symbol, value)
  }

  private mutating func bind(_ symbol: String, _ value: String) -> Bool {
    if let known = values[symbol] { return known == value }
    let isUUID = symbol.utf8.dropFirst().first == UInt8(ascii: "u")
    // Two symbols must have different values.
    guard symbols[value] == nil, !isUUID || value.utf8.count == 36 else { return false }
    values[symbol] = value
    symbols[value] = symbol
    return true
  }

  /// Binds a time. Two requests may have the same time, but a later request must not have an earlier time. Times in
  /// this format sort as text.
  private mutating func bind(time symbol: String, _ value: String) -> Bool {
    if let known = values[symbol] { return known == value }
    guard let place = Int64(symbol.dropFirst(2).dropLast()), value.utf8.count == 24 else { return false }
    if place >= latest.place {
      guard value >= latest.value else { return false }
      latest = (place, value)
    }
    values[symbol] = value
    return true
  }
}
