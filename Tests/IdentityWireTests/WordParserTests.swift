import IdentityCore
import IdentityWire
import Testing

/// Returns the words of a line as `value` or `name=value`.
///
/// - Throws: the fault of the line.
private func words(_ line: [UInt8]) throws(SyntaxFault) -> [String] {
  var parser = WordParser()
  try parser.parse(line.span)
  return parser.words.map { word in
    let value = "\(parser.text(word, in: line.span))"
    return word.isAttribute ? "\(parser.name(word, in: line.span))=\(value)" : value
  }
}

private func words(_ line: String) throws(SyntaxFault) -> [String] { try words(Array(line.utf8)) }

struct WordParserTests {
  @Test(
    arguments: [
      ("ping", ["ping"]), ("get device", ["get", "device"]), ("  get   device  ", ["get", "device"]), ("", []),
      ("get uuid COUNT=3", ["get", "uuid", "count=3"]), ("a=b=c", ["a=b=c"]), ("=a", ["=a"]), ("1a=b", ["1a=b"]),
      ("check \"a=b\"", ["check", "a=b"]), ("x \"two words\"", ["x", "two words"]), ("x \"\"", ["x", ""]),
      ("x label=\"my key\" y", ["x", "label=my key", "y"]), ("x label=\"\"", ["x", "label="]),
      ("x attr.N-1_a=v", ["x", "attr.n-1_a=v"]), ("x \"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", ["x", "\"\\/\u{8}\u{c}\n\r\t"]),
      ("x \"\\u00e9\"", ["x", "é"]), ("x é", ["x", "é"]), ("x \"\\ud83d\\ude00\"", ["x", "😀"]),
      ("x 😀=1", ["x", "😀=1"]),
      ("x \"a\\u0041b\"", ["x", "aAb"]), ("x \u{a0}", ["x", "\u{a0}"]), ("x {a}", ["x", "{a}"]), ("x 'a", ["x", "'a"]),
    ] as [(String, [String])])
  func `a line is split into its words`(line: String, expected: [String]) throws {
    #expect(try words(line) == expected)
  }

  @Test(
    arguments: [
      ("a\"b", .brokenQuote), ("\"a\"b", .brokenQuote), ("\"a", .brokenQuote), ("a\\b", .brokenQuote),
      ("x l=\"a\"b", .brokenQuote), ("\"a\\", .brokenQuote), ("\"\\x\"", .invalidEscape),
      ("\"\\u00g0\"", .invalidEscape),
      ("\"\\u12\"", .invalidEscape), ("\"\\ud800\"", .invalidEscape), ("\"\\ud800\\u0041\"", .invalidEscape),
      ("\"\\udc00\"", .invalidEscape), ("\"\\u0000\"", .invalidEscape), ("x l=", .emptyValue), ("x l= y", .emptyValue),
      ("a\tb", .controlCharacter), ("a\u{1}", .controlCharacter), ("\"a\tb\"", .controlCharacter),
      ("a\u{7f}", .controlCharacter), ("a\u{85}", .controlCharacter), ("\"\u{9f}\"", .controlCharacter),
      ("a\rb", .controlCharacter), ("a\u{0}b", .nul),
    ] as [(String, SyntaxFault)])
  func `a line that does not parse is refused with the reason`(line: String, fault: SyntaxFault) {
    #expect(throws: fault) { try words(line) }
  }

  @Test(
    arguments: [
      [0xff], [0x61, 0xc3], [0xed, 0xa0, 0x80], [0xc0, 0xaf], [0xf5, 0x80, 0x80, 0x80], [0x22, 0xe2, 0x82, 0x22],
    ] as [[UInt8]])
  func `row 24: bytes that are not UTF-8 are refused, quoted or bare`(line: [UInt8]) {
    #expect(throws: SyntaxFault.invalidUTF8) { try words(line) }
  }

  @Test func `the number of words in a line is limited`() throws {
    let most = Array(repeating: "a", count: Bound.wordsPerLine)
    #expect(try words(most.joined(separator: " ")).count == Bound.wordsPerLine)
    #expect(throws: SyntaxFault.tooManyWords) { try words((most + ["a"]).joined(separator: " ")) }
  }

  @Test func `row 22: no bytes make the parser trap, and accepted words are written back the same`() throws {
    var random = SystemRandomNumberGenerator()
    let alphabet = Array("abK =\"\\/unt0\u{1}é😀\t.-_".utf8) + [0xc2, 0x85, 0xff, 0x00, 0x7f]
    var accepted = 0
    for _ in 0..<50_000 {
      let line = (0..<Int.random(in: 0..<24, using: &random)).map { _ in alphabet.randomElement(using: &random) ?? 0 }
      var parser = WordParser()
      guard (try? parser.parse(line.span)) != nil else { continue }
      accepted += 1
      let texts = parser.words.map {
        ($0.isAttribute ? parser.name($0, in: line.span) : nil, parser.text($0, in: line.span))
      }
      var written: [UInt8] = []
      for (name, text) in texts {
        if !written.isEmpty { written.append(UInt8(ascii: " ")) }
        if let name {
          written += name.bytes + [UInt8(ascii: "=")]
          WordEncoder.append(value: text.bytes, to: &written)
        } else {
          WordEncoder.append(word: text.bytes, to: &written)
        }
      }
      var again = WordParser()
      try again.parse(written.span)
      let second = again.words.map {
        ($0.isAttribute ? again.name($0, in: written.span) : nil, again.text($0, in: written.span))
      }
      #expect(texts.elementsEqual(second, by: ==), "\(line)")
    }
    #expect(accepted > 1_000)
  }
}

struct WordEncoderTests {
  private func written(_ text: String, asWord: Bool = true) -> String {
    var bytes: [UInt8] = []
    if asWord {
      WordEncoder.append(word: Array(text.utf8), to: &bytes)
    } else {
      WordEncoder.append(value: Array(text.utf8), to: &bytes)
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  @Test(arguments: [
    ("plain", "plain"), ("é", "é"), ("", "\"\""), ("two words", "\"two words\""), ("a\"b", "\"a\\\"b\""),
    ("a\\b", "\"a\\\\b\""), ("a\nb", "\"a\\nb\""), ("\u{1}", "\"\\u0001\""), ("\u{7f}", "\"\\u007f\""),
    ("\u{85}", "\"\\u0085\""), ("a=b", "\"a=b\""), ("=b", "=b"), ("1=b", "1=b"), ("\u{a0}", "\u{a0}"),
  ])
  func `a word is quoted only if necessary`(text: String, expected: String) {
    #expect(written(text) == expected)
  }

  @Test func `an attribute's value with an equals sign needs no quotes`() {
    #expect(written("a=b", asWord: false) == "a=b")
    #expect(written("a b", asWord: false) == "\"a b\"")
  }
}
