import Foundation
import IdentityCore
import IdentityWire
import Testing

/// The form in which people see a text that others have written.
struct VisibleTextTests {
  /// The characters that are escaped.
  private static let hidden: [ClosedRange<UInt32>] = [
    0x00...0x1f, 0x7f...0x9f, 0x61c...0x61c, 0x200b...0x200b, 0x200e...0x200f, 0x2028...0x202e, 0x2060...0x206f,
    0xfeff...0xfeff,
  ]

  @Test func `exactly these characters are hidden`() {
    for value in UInt32(0)...0x10ffff {
      guard let scalar = Unicode.Scalar(value) else { continue }
      let isExpected = Self.hidden.contains { $0.contains(value) }
      if WordEncoder.isHidden(scalar) != isExpected { Issue.record("U+\(String(value, radix: 16))") }
    }
  }

  @Test func `all bidirectional controls are hidden`() {
    for value in UInt32(0)...0x10ffff {
      guard let scalar = Unicode.Scalar(value) else { continue }
      let isControl =
        scalar.properties.isBidiControl
        || [.control, .lineSeparator, .paragraphSeparator].contains(
          scalar.properties.generalCategory)
      if isControl, !WordEncoder.isHidden(scalar) { Issue.record("U+\(String(value, radix: 16))") }
    }
  }

  @Test(arguments: [
    ("a\u{1b}[2Jb", #"a\u001b[2Jb"#), ("a\nb\tc\u{7f}", #"a\u000ab\u0009c\u007f"#),
    ("\u{9b}1m\u{85}", #"\u009b1m\u0085"#),
    ("a\u{2028}b\u{2029}", #"a\u2028b\u2029"#), ("user\u{202e}txt.exe\u{202c}", #"user\u202etxt.exe\u202c"#),
    ("\u{61c}\u{200e}\u{200f}\u{2066}\u{2069}", #"\u061c\u200e\u200f\u2066\u2069"#),
    ("ad\u{200b}min\u{2060}\u{feff}", #"ad\u200bmin\u2060\ufeff"#),
  ])
  func `each hidden character in a text is escaped`(text: String, shown: String) throws {
    #expect(WordEncoder.visible(text) == shown)
    #expect(WordEncoder.visible(shown) == shown)
  }

  @Test(arguments: [
    "", "plain", "a \"word\" \\ b", "ünï", "שלום", "می\u{200c}خواهم",
    "क्\u{200d}ष", "👩\u{200d}👩\u{200d}👧",
  ])
  func `visible text of any language stays unchanged`(text: String) {
    #expect(WordEncoder.visible(text).unicodeScalars.elementsEqual(text.unicodeScalars))
    #expect(!WordEncoder.quoted(text).contains("\\u"))
  }

  @Test func `a JSON string with escapes is read back unchanged, by a program and by the daemon`() throws {
    let hidden = Self.hidden.flatMap(\.self).compactMap { Unicode.Scalar($0) }.filter { $0.value != 0 }
    let text = String(String.UnicodeScalarView(hidden)) + "\"\\a b=é👩\u{200d}👧"
    let quoted = WordEncoder.quoted(text)
    #expect(!quoted.unicodeScalars.contains(where: WordEncoder.isHidden))
    let read = try #require(try JSONSerialization.jsonObject(with: Data("[\(quoted)]".utf8)) as? [String])
    #expect(read.first?.unicodeScalars.elementsEqual(text.unicodeScalars) == true)
    guard case .row(let row)? = ReplyLine(Array("* \(quoted)".utf8)) else {
      Issue.record("\(quoted)")
      return
    }
    #expect(row.words == [Text(text)])
  }
}
