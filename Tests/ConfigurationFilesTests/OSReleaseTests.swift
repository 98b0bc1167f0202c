import ConfigurationFiles
import TestSupport
import Testing

struct OSReleaseTests {
  /// Returns the value of a variable in a text. Nil if the variable is unassigned or empty.
  private func value(_ text: String, _ name: String = "A") throws(OSRelease.Fault) -> String? {
    try OSRelease(Array(text.utf8)).value(of: name, limit: 255)
  }

  @Test func `a file of Debian is read`() throws {
    let text = """
      PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"
      NAME="Debian GNU/Linux"
      VERSION_ID="12"
      VERSION="12 (bookworm)"
      VERSION_CODENAME=bookworm
      ID=debian
      HOME_URL="https://www.debian.org/"

      """
    for (name, expected) in [
      ("PRETTY_NAME", "Debian GNU/Linux 12 (bookworm)"), ("VERSION_ID", "12"), ("VERSION", "12 (bookworm)"),
      ("VERSION_CODENAME", "bookworm"), ("ID", "debian"), ("HOME_URL", "https://www.debian.org/"),
    ] {
      #expect(try value(text, name) == expected)
    }
    #expect(try value(text, "BUILD_ID") == nil)
    #expect(try value(text, "version_id") == nil)
    #expect(try value(text, "") == nil)
  }

  // os-release(5): a value with characters other than letters and digits is quoted, with the escapes of a shell.
  @Test(
    arguments: [
      ("A=b", "b"), ("A=\"b\"", "b"), ("A='b'", "b"), ("A=\"two words\"", "two words"), ("A='two words'", "two words"),
      ("A=\"it's\"", "it's"), ("A='say \"x\"'", "say \"x\""), ("A=\"#\"", "#"), ("A=b=c", "b=c"), ("A=\"b=c\"", "b=c"),
      ("A=\"\\\"\\$\\`\\\\\"", "\"$`\\"), ("A=\"\\n\\a\\'\"", "\\n\\a\\'"), ("A=\"\\\\n\"", "\\n"),
      ("A='\\\"\\$\\n'", "\\\"\\$\\n"), ("A=a\\ b", "a b"), ("A=\\\"b\\\"", "\"b\""), ("A=a\\\\b", "a\\b"),
      ("A=\\n", "n"), ("A=$B", "$B"), ("A=\"${B}`c`\"", "${B}`c`"), ("A=\"é\"", "é"), ("A=\" b \"", " b "),
      // A comment, and values that a shell would reject.
      ("A=\"b\" # c", "b"), ("A='b' # c", "b"), ("A=\"b\"c\"", "b"), ("A=b\"", "b\""), ("A=b\\", "b"),
    ])
  func `values are unquoted and unescaped like in a shell, without expansion`(text: String, expected: String) throws {
    #expect(try value(text) == expected)
    #expect(try value("X=1\n\(text)\nZ=2\n") == expected)
    #expect(try value("X=1\n\(text)\nZ=2\n", "Z") == "2")
  }

  @Test(arguments: [
    "A=", "A=\"\"", "A=''", "A=  ", "A=\r", "A", "#A=b", "  # A=b", "=b", "A =b", "B=A=b", "", "\n\n", "a=b",
  ])
  func `an empty or malformed assignment yields no value`(text: String) throws {
    #expect(try value(text) == nil)
    #expect(try value("\(text)\n") == nil)
  }

  @Test func `comments, empty lines and surrounding blanks are skipped`() throws {
    let text = "# A=1\n\n\t  #A=2\n \t A=b \t \n;B=3\nnonsense\nC=4 # no comment\nD=\"5\"  \n"
    #expect(try value(text) == "b")
    #expect(try value(text, "B") == nil)
    #expect(try value(text, "C") == "4 # no comment")
    #expect(try value(text, "D") == "5")
  }

  @Test(arguments: ["A=\"b c\"\r\nB=d\r\n", "A=\"b c\"\nB=d", "A='b c'\r\n\r\nB=d\r", "B=d\nA=\"b c\""])
  func `lines end with LF, CR LF or the end of the file`(text: String) throws {
    #expect(try value(text) == "b c")
    #expect(try value(text, "B") == "d")
  }

  @Test func `the last assignment of a variable counts`() throws {
    #expect(try value("A=1\nB=2\nA=3\n") == "3")
    // An empty last value counts too.
    #expect(try value("A=1\nA=\n") == nil)
    #expect(try value("A=1\nA=\"\"\n") == nil)
    #expect(try value("A=\nA=1\n") == "1")
  }

  @Test(arguments: ["A='b\"", "A=\"b'", "A='", "A=\"", "A=\"b", "A=\"b\\\"", "A='b\\", "A=\"b\r"])
  func `a value without its closing quotation mark is a fault of this value alone`(text: String) throws {
    #expect(throws: OSRelease.Fault.openQuote("A")) { try value("\(text)\nB=c\n") }
    #expect(try value("\(text)\nB=c\n", "B") == "c")
    #expect(try value("\(text)\nA=d\n") == "d")
  }

  @Test func `a byte order mark makes every value uncertain`() {
    for text in ["\u{feff}A=b\n", "\u{feff}\nA=b\n", "\u{feff}"] {
      #expect(throws: OSRelease.Fault.byteOrderMark) { try value(text) }
    }
  }

  @Test func `a value beyond the limit, and one that is no text, is a fault`() throws {
    let long = String(repeating: "é", count: 127)
    #expect(try value("A=\(long)c") == "\(long)c")
    #expect(throws: OSRelease.Fault.tooLong("A", limit: 255)) { try value("A=\(long)cd") }
    for bytes in [[0xff], [0xc3], [0x62, 0]] as [[UInt8]] {
      let release = OSRelease(Array("A=\"".utf8) + bytes + Array("\"\nB=c\n".utf8))
      #expect(throws: OSRelease.Fault.notText("A")) { try release.value(of: "A", limit: 255) }
      #expect(try release.value(of: "B", limit: 255) == "c")
    }
  }

  // MARK: Files

  private func found(_ folder: TemporaryFolder) throws -> String? {
    try OSRelease(paths: [folder["etc/os-release"], folder["usr/lib/os-release"]])
      .map { try $0.value(of: "A", limit: 255) ?? "nothing" }
  }

  @Test func `only the first existing file counts`() throws {
    let folder = try TemporaryFolder()
    #expect(try found(folder) == nil)
    try folder.write("usr/lib/os-release", "A=usr\n")
    #expect(try found(folder) == "usr")
    try folder.write("etc/os-release", "B=etc\n")
    #expect(try found(folder) == "nothing")
    try folder.write("etc/os-release", "A=etc\n")
    #expect(try found(folder) == "etc")
  }

  @Test func `links are followed, and a dangling or masking link counts as missing`() throws {
    let folder = try TemporaryFolder()
    try folder.write("usr/lib/os-release", "A=usr\n")
    try folder.link("etc/os-release", to: "../usr/lib/os-release")
    #expect(try found(folder) == "usr")
    // A dangling link counts as a missing file.
    let other = try TemporaryFolder()
    try other.write("usr/lib/os-release", "A=usr\n")
    try other.link("etc/os-release", to: "nowhere")
    #expect(try found(other) == "usr")
    let masked = try TemporaryFolder()
    try masked.write("usr/lib/os-release", "A=usr\n")
    try masked.link("etc/os-release", to: "/dev/null")
    #expect(try found(masked) == "usr")
  }

  @Test func `the files are those of os-release(5), in that order`() throws {
    #expect(OSRelease.paths == ["/etc/os-release", "/usr/lib/os-release"])
    let release = try #require(try OSRelease())
    #expect(try release.value(of: "ID", limit: 255) != nil)
  }

  @Test func `a file of 65,536 bytes is read, and a longer one is an error`() throws {
    let folder = try TemporaryFolder()
    let comment = "#" + String(repeating: "x", count: 65_531)
    try folder.write("etc/os-release", "\(comment)\nA=b")
    #expect(try found(folder) == "b")
    try folder.write("etc/os-release", "\(comment)\nA=bc")
    // The file in the next folder must not be used instead.
    try folder.write("usr/lib/os-release", "A=usr\n")
    do {
      _ = try OSRelease(paths: [folder["etc/os-release"], folder["usr/lib/os-release"]])
      Issue.record("it was read")
    } catch {
      #expect("\(error)".contains("etc/os-release"))
    }
  }

  @Test func `a folder in the place of the file is an error`() throws {
    let folder = try TemporaryFolder()
    try folder.write("etc/os-release/x", "A=b\n")
    #expect(throws: (any Error).self) { try found(folder) }
  }
}
