import LinuxSystem
import Testing

private let known = [
  CommandLine.Option("help", "Show this."),
  CommandLine.Option("version", "Show the version."),
  CommandLine.Option("socket", value: "PATH", "Listen there."),
  CommandLine.Option("state-directory", value: "PATH", "Keep the state there."),
  CommandLine.Option("verbose", "Say more."),
]

// getopt_long(3) keeps its state in variables of the whole process.
@Suite(.serialized) struct CommandLineTests {
  static let good: [([String], [String: String], [String])] = [
    ([], [:], []),
    (["--help"], ["help": ""], []),
    (["--socket=/run/x"], ["socket": "/run/x"], []),
    (["--socket", "/run/x"], ["socket": "/run/x"], []),
    (["--socket="], ["socket": ""], []),
    (["--socket=a=b=c"], ["socket": "a=b=c"], []),
    (["--socket", "a b  c"], ["socket": "a b  c"], []),
    (["--socket=a b"], ["socket": "a b"], []),
    (["--socket", "--help"], ["socket": "--help"], []),
    (["--socket", ""], ["socket": ""], []),
    (["--so", "/x"], ["socket": "/x"], []),
    (["--st=/x"], ["state-directory": "/x"], []),
    (["--h", "--verb"], ["help": "", "verbose": ""], []),
    (["--socket=1", "--socket=2"], ["socket": "2"], []),
    (["get", "device"], [:], ["get", "device"]),
    (
      ["get", "--help", "device", "--socket", "/x", "app=1"], ["help": "", "socket": "/x"], ["get", "device", "app=1"]
    ),
    (["z", "a", "m", "--help", "b"], ["help": ""], ["z", "a", "m", "b"]),
    (["--", "--help"], [:], ["--help"]),
    (["get", "--", "--help", "--"], [:], ["get", "--help", "--"]),
    (["--help", "--", "-x", "y"], ["help": ""], ["-x", "y"]),
    (["", "-", "a"], [:], ["", "-", "a"]),
    (["é", "--socket=ü"], ["socket": "ü"], ["é"]),
  ]

  @Test(arguments: good)
  func `options and words are distinguished`(arguments: [String], options: [String: String], words: [String]) throws {
    let line = try CommandLine(arguments, known)
    #expect(line.options == options)
    #expect(line.words == words)
  }

  static let bad: [([String], String)] = [
    (["--unknown"], "unknown option '--unknown'"),
    (["--unknown=5"], "unknown option '--unknown=5'"),
    (["get", "--unknown", "device"], "unknown option '--unknown'"),
    (["--ver"], "unknown option '--ver'"),
    (["--s=1"], "unknown option '--s=1'"),
    (["-x"], "unknown option '-x'"),
    (["get", "-x"], "unknown option '-x'"),
    (["get", "-xy"], "unknown option '-xy'"),
    (["a", "b", "-xy", "c"], "unknown option '-xy'"),
    (["--socket"], "option '--socket' has a missing or an unexpected value"),
    (["get", "--socket"], "option '--socket' has a missing or an unexpected value"),
    (["--help=yes"], "option '--help=yes' has a missing or an unexpected value"),
    (["get", "--help="], "option '--help=' has a missing or an unexpected value"),
    (["--help", "--bad", "--socket"], "unknown option '--bad'"),
  ]

  @Test(arguments: bad) func `an error names the wrong option or word`(arguments: [String], message: String) throws {
    let error = #expect(throws: CommandLine.UsageError.self) { try CommandLine(arguments, known) }
    #expect(error?.description == message)
    #expect((error?.unknownOption != nil) == message.hasPrefix("unknown option"))
  }

  @Test func `a failed command line does not affect the next one`() throws {
    for _ in 0..<3 {
      #expect(throws: CommandLine.UsageError.self) { try CommandLine(["a", "-abc", "--socket=1"], known) }
      let line = try CommandLine(["--socket=2", "word"], known)
      #expect(line.options == ["socket": "2"])
      #expect(line.words == ["word"])
    }
  }

  private static let short = [
    CommandLine.Option("help", letter: "h", "Show this."),
    CommandLine.Option("quiet", letter: "q", "Say less."),
    CommandLine.Option("socket", letter: "s", value: "PATH", "Listen there."),
    CommandLine.Option("version", "Show the version."),
  ]

  @Test(
    arguments: [
      (["-h"], ["help": ""], []), (["-hq", "a"], ["help": "", "quiet": ""], ["a"]),
      (["a", "-q", "b"], ["quiet": ""], ["a", "b"]), (["-qs", "/x"], ["quiet": "", "socket": "/x"], []),
      (["-s/x", "--quiet"], ["socket": "/x", "quiet": ""], []), (["--", "-q"], [:], ["-q"]),
    ] as [([String], [String: String], [String])])
  func `short options can be combined`(arguments: [String], options: [String: String], words: [String]) throws {
    let line = try CommandLine(arguments, Self.short)
    #expect(line.options == options)
    #expect(line.words == words)
  }

  @Test(arguments: [(["-x"], "unknown option '-x'"), (["-s"], "option '-s' has a missing or an unexpected value")])
  func `an error names a wrong short option`(arguments: [String], message: String) {
    let error = #expect(throws: CommandLine.UsageError.self) { try CommandLine(arguments, Self.short) }
    #expect(error?.description == message)
  }

  @Test func `help lists short options before the long ones`() {
    #expect(
      CommandLine.help([Self.short[0], Self.short[3]]) == """
          -h, --help     Show this.
              --version  Show the version.

        """)
  }

  @Test func `help lists the options in a column`() {
    #expect(
      CommandLine.help([known[0], known[2]]) == """
          --help         Show this.
          --socket=PATH  Listen there.

        """)
  }
}
