import ConfigurationFiles
import Testing

struct INIFileTests {
  private func parse(_ text: String) throws -> [Setting] { try parse(Array(text.utf8)) }
  private func parse(_ bytes: [UInt8]) throws -> [Setting] { try INIFile.parse(bytes, file: "test.conf") }

  /// Returns each setting as `Section.Name=Value@line`, which is easier to read than four fields.
  private func summary(_ text: String) throws -> [String] {
    try parse(text).map { "\($0.section).\($0.name)=\($0.value)@\($0.place.line)" }
  }

  static let good: [(text: String, settings: [String])] = [
    ("", []),
    ("\n\n\n", []),
    ("[Log]\nLevel=debug\n", ["Log.Level=debug@2"]),
    ("[Log]\nLevel=debug", ["Log.Level=debug@2"]),
    ("[Log]\r\nLevel=debug\r\n\r\nTarget=journal\r\n", ["Log.Level=debug@2", "Log.Target=journal@4"]),
    ("\n\n[Log]\n\n\nLevel=debug\n\n[Store]\n\nSize=1\n", ["Log.Level=debug@6", "Store.Size=1@10"]),
    ("# one\n; two\n[Log]\n# three\nLevel=debug\n;Level=info\n", ["Log.Level=debug@5"]),
    ("[Log]\nLevel = debug \t\n", ["Log.Level=debug@2"]),
    ("[Log]\nLevel=a b  c\n", ["Log.Level=a b  c@2"]),
    ("[Log]\nLevel=a=b=c\n", ["Log.Level=a=b=c@2"]),
    ("[Log]\nLevel=\n", ["Log.Level=@2"]),
    ("[Log]\nLevel=one\nLevel=two\n", ["Log.Level=one@2", "Log.Level=two@3"]),
    ("[Log]\n[Log]\nA=1\n[Log]\nB=2\n", ["Log.A=1@3", "Log.B=2@5"]),
    ("A=1\n[Log]\nB=2\n", [".A=1@1", "Log.B=2@3"]),
    ("[Log]\nName=é\u{1F600}\n", ["Log.Name=é\u{1F600}@2"]),
    ("[Log]\nA=x#y\nB=\"q\"\n", ["Log.A=x#y@2", "Log.B=\"q\"@3"]),
    ("\u{FEFF}[Log]\nA=1\n", ["Log.A=1@2"]),
  ]

  @Test(arguments: good) func `settings have a section, a name, a value and a line`(text: String, settings: [String])
    throws
  {
    #expect(try summary(text) == settings)
  }

  @Test func `a place is written as file and line`() throws {
    #expect(try parse("[A]\n\nB=1\n").first?.place.description == "test.conf:3")
  }

  static let bad: [(text: String, line: Int)] = [
    ("nonsense\n", 1),
    ("[Log]\nnonsense\n", 2),
    ("[Log]\n\n\nnonsense", 4),
    ("[Log\nA=1\n", 1),
    ("[Log]\nA=1\n[Store\n", 3),
    ("[Log]\r\n\r\nnonsense\r\n", 3),
    ("# comment\n[Log]\nA=1\nnonsense\nB=2\nmore nonsense\n", 4),
  ]

  @Test(arguments: bad) func `the first invalid line is reported`(text: String, line: Int) throws {
    #expect(
      throws: ConfigurationFailure(place: "test.conf:\(line)", reason: "the line is neither [Section] nor Name=value")
    ) { try parse(text) }
  }

  @Test func `a line of 198 bytes is read completely, and a longer one is reported`() throws {
    let value = String(repeating: "v", count: 196)
    #expect(try summary("[A]\nB=\(value)\nC=1\n") == ["A.B=\(value)@2", "A.C=1@3"])
    let failure = ConfigurationFailure(place: "test.conf:2", reason: "the line is longer than 198 bytes")
    for text in [
      "[A]\nB=\(value)v\n", "[A]\nB=\(value)v", "[A]\n#\(value)vv\nC=1", "[A]\nB=\(value + value + value)\n",
    ] {
      #expect(throws: failure) { try parse(text) }
    }
  }

  @Test(
    arguments: [
      [0], [0x41, 0x3d, 0, 0x0a], [0xff], [0x41, 0x3d, 0xc3], [0xed, 0xa0, 0x80], [0xc0, 0x80],
    ] as [[UInt8]])
  func `text that is not UTF-8 or contains NUL is refused`(bytes: [UInt8]) throws {
    #expect(throws: ConfigurationFailure(place: "test.conf", reason: "the file is not UTF-8 text")) {
      try parse(Array("[A]\nB=1\n".utf8) + bytes)
    }
  }

  // systemd.syntax(7): white space before a name is ignored.
  @Test(arguments: [
    "[Log]\n  Level=debug\n", "[Log]\n\tLevel=debug\n", "  [Log]\nLevel=debug\n",
    "[Log]\n# comment\n  Level=debug\n",
  ]) func `white space at the beginning of a line is ignored`(text: String) throws {
    let settings = try parse(text)
    #expect(settings.map(\.section) == ["Log"])
    #expect(settings.map(\.name) == ["Level"])
    #expect(settings.map(\.value) == ["debug"])
  }

  @Test func `an indented setting does not continue the one above`() throws {
    #expect(try summary("[Log]\nA=1\n  B=2\n") == ["Log.A=1@2", "Log.B=2@3"])
  }

  @Test(arguments: ["\u{b}", "\u{c}", "\r", " \u{c}\t"])
  func `other white space at the beginning of a line is ignored too`(space: String) throws {
    #expect(try summary("[Log]\nA=1\n\(space)B=2\n") == ["Log.A=1@2", "Log.B=2@3"])
  }

  @Test func `an indented section is a section`() throws {
    #expect(try summary("[Log]\nA=1\n  [Store]\nB=2\n") == ["Log.A=1@2", "Store.B=2@4"])
  }

  // Two rules of libinih that systemd does not have.
  @Test func `a semicolon after white space begins a comment, but not within a word`() throws {
    #expect(try summary("[Log]\nA=one ;two\nB=x;y\n") == ["Log.A=one@2", "Log.B=x;y@3"])
  }

  @Test func `a colon separates like an equals sign, whichever comes first`() throws {
    #expect(try summary("[Log]\nA: b=c\nB=c:d\n") == ["Log.A=b=c@2", "Log.B=c:d@3"])
  }

  @Test func `line numbers are right in a file of many lines`() throws {
    let text = "[A]\n" + (0..<5_000).map { "\n# \($0)\nB=\($0)\n" }.joined()
    let settings = try parse(text)
    #expect(settings.count == 5_000)
    for (number, setting) in settings.enumerated() {
      #expect(setting.value == "\(number)")
      #expect(setting.place.line == 4 + 3 * number)
    }
  }
}
