import Foundation
import TestSupport
import Testing

/// The README's commands, run to compare their output with the output that it shows.
@Suite struct ReadmeTests {
  /// Whether to replace the output in the README with the real output.
  private let updates = ProcessInfo.processInfo.environment["IDENTITYD_UPDATE_README"] != nil

  // MARK: Commands and their output

  /// The output of a command, with log lines and events apart: background processes may write these at any time.
  private struct Sorted {
    var foreground: [String] = []
    var log: [String] = []
    var events: [String] = []

    init(_ lines: [String]) {
      for line in lines {
        if line.hasPrefix("identityd: ") {
          log.append(line)
        } else if line.contains(#/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z  \d+  /#) {
          events.append(line)
        } else {
          foreground.append(line)
        }
      }
    }
  }

  @Test(.enabled(if: ReadmeShell.missing == nil, "there is no sandbox to run commands in"))
  func `each command that it shows does what it shows`() throws {
    let readme = try Readme()
    let steps = readme.steps
    #expect(steps.count > 40)
    let shell = try ReadmeShell()
    var comparison = ReadmeComparison(typed: steps.map(\.command))
    var outputs: [[String]] = []
    for step in steps {
      let wanted = Sorted(step.output)
      var turns = 0
      let output = try shell.type(step.command) { lines in
        let got = Sorted(lines)
        turns += 1
        // The output to wait for is unknown: takes all output of one second.
        guard !updates else { return turns > 100 }
        var next = comparison
        guard next.take(wanted.foreground, got.foreground) else { return true }
        return got.log.count >= wanted.log.count && got.events.count >= wanted.events.count
      }
      let got = Sorted(output.lines)
      var isAsShown = output.status == 0
      for (lines, others) in [
        (wanted.foreground, got.foreground), (wanted.log, got.log), (wanted.events, got.events),
      ] where isAsShown { isAsShown = comparison.take(lines, others) }
      guard isAsShown || updates else {
        throw Failure(
          """
          README.md:\(step.line): $ \(step.command)
          it shows:
          \(step.output.joined(separator: "\n"))
          what came, with status \(output.status):
          \(output.lines.joined(separator: "\n"))
          """)
      }
      outputs.append(isAsShown ? step.output : output.lines.map(comparison.asShown))
    }
    if updates { try write(outputs, of: steps, to: readme) }
  }

  @Test(.enabled(if: ReadmeShell.missing == nil, "there is no sandbox to run commands in"))
  func `a command can change nothing but what is below the temporary folder`() throws {
    let shell = try ReadmeShell()
    for path in [Readme.file.path, "/etc/passwd", "/var/tmp/file", "/dev/shm/../../run/file", "packaging/run"] {
      let output = try shell.type("touch \(path) 2>/dev/null || echo refused") { $0 == ["refused"] }
      #expect(output.lines == ["refused"], "\(path)")
    }
    #expect(try shell.type("touch /tmp/tour/file && echo done") { !$0.isEmpty }.lines == ["done"])
  }

  @Test(.enabled(if: ProcessInfo.processInfo.environment["CI"] == "true", "only a build server has to run everything"))
  func `a build server has the sandbox`() { #expect(ReadmeShell.missing == nil) }

  /// Replaces the output in the README with the real output.
  private func write(_ outputs: [[String]], of steps: [Readme.Step], to readme: Readme) throws {
    var lines = readme.lines
    for (step, output) in zip(steps, outputs).reversed() {
      lines.replaceSubrange(step.line..<(step.line + step.output.count), with: output)
    }
    try Data(lines.joined(separator: "\n").utf8).write(to: Readme.file)
  }

  @Test func `the client in Python is answered`() throws {
    let daemon = try DaemonUnderTest().start()
    let blocks = try Readme().blocks.filter { $0.language == "python" }
    #expect(!blocks.isEmpty)
    for block in blocks {
      let result = try run(
        ["python3", "-c", block.lines.joined(separator: "\n")], environment: ["IDENTITYD_SOCKET": daemon.socket])
      let answer = try daemon.ask("get device")
      #expect(result.output == "\(answer)\n", "\(result)")
    }
  }

  // MARK: Completeness

  /// The test files that read blocks or commands from the README and run them, keyed by the name of the block, or by
  /// the heading above the commands.
  private static let takers = [
    "library": "Tests/LibraryTests/ReadmeExampleTests.swift", "debugger": "Tests/EndToEndTests/DebuggerTests.swift",
    "build": "Tests/SystemTests/RunScriptTests.swift", "client": "Tests/EndToEndTests/ReadmeTests.swift",
    "installation": "Tests/SystemTests/ReadmeTests.swift", "copy": "Tests/SystemTests/ReadmeTests.swift",
    "image": "Tests/SystemTests/ReadmeTests.swift", "metrics": "Tests/SystemTests/ReadmeTests.swift",
    "At three in the morning": "Tests/SystemTests/ReadmeTests.swift",
  ]
  /// The files that contain a command as a whole line, keyed by the command.
  private static let runners = ["packaging/test --times": ".ci/run"]
  /// Commands that take too long for a test, or need a person, each with a file that must mention the command.
  private static let byHand = [
    "identityctl top": "packaging/man/identityctl.1", "packaging/build-rpm": "packaging/test",
    "packaging/test --long": "packaging/test", "packaging/test --planted": "packaging/test",
    "packaging/test --quick": "packaging/test", "packaging/test --quick VersionTests": "packaging/test",
    "packaging/bench": "packaging/bench",
    "packaging/bench neighbour": "packaging/benchmarks/Sources/IdentityBench/Program.swift",
  ]

  private static func text(_ path: String) throws -> String {
    try String(
      contentsOf: Readme.file.deletingLastPathComponent().appending(path: path), encoding: .utf8)
  }

  /// Returns the lines without indentation, and without empty lines.
  private static func unindented(_ text: String) -> String {
    text.split(separator: "\n").map { $0.drop { $0 == " " } }.filter { !$0.isEmpty }.joined(separator: "\n")
  }

  @Test func `a test runs each block`() throws {
    for block in try Readme().blocks where block.language != "console" {
      let name = try #require(block.name, "README.md:\(block.line): no comment says what tests it")
      let taker = try #require(Self.takers[name], "README.md:\(block.line): nothing tests '\(name)'")
      let text = try Self.text(taker)
      // The test has a copy of code to compile, line by line. All other blocks are read from the README.
      let isTaken =
        block.language == "swift"
        ? Self.unindented(text).contains(Self.unindented(block.lines.joined(separator: "\n")))
        : text.contains(block.language == "sh" ? "of: \"\(name)\"" : "\"\(block.language)\"")
      #expect(isTaken, "\(taker) does not run '\(name)'")
    }
  }

  @Test func `a test runs each command within the text`() throws {
    let readme = try Readme()
    let night = "At three in the morning"
    let taken = readme.commands(below: night)
    let isTaken = try Self.text(Self.takers[night] ?? "README.md").contains("below: \"\(night)\"")
    #expect(isTaken)
    for (line, command) in readme.inline where !taken.contains(command) {
      if readme.steps.contains(where: { $0.command.contains(command) }) { continue }
      if let runner = Self.runners[command] {
        let isThere = try Self.text(runner).components(separatedBy: "\n").contains(command)
        #expect(isThere, "\(runner)")
      } else {
        let file = try #require(Self.byHand[command], "README.md:\(line): nothing runs '\(command)'")
        // The file must contain the first argument, or the whole command if there is none.
        let word = command.split(separator: " ").dropFirst().first ?? command[...]
        let isKnown = try Self.text(file).contains(word)
        #expect(isKnown, "\(file) does not know \(word)")
      }
    }
  }

  @Test func `no command hides in an indented line`() throws {
    var isInBlock = false
    for (index, line) in try Readme().lines.enumerated() {
      if line.drop(while: { $0 == " " }).hasPrefix("```") { isInBlock.toggle() }
      #expect(isInBlock || !line.hasPrefix("    "), "README.md:\(index + 1)")
    }
    #expect(!isInBlock)
  }

  @Test func `what it points to is there, and it points to everything`() throws {
    let root = Readme.file.deletingLastPathComponent()
    let text = try Self.text("README.md")
    for match in text.matches(of: /\]\(([^)#:]+)\)/) {
      #expect(FileManager.default.fileExists(atPath: root.appending(path: match.1).path), "\(match.1)")
    }
    for folder in ["Sources", "packaging"] {
      for name in try FileManager.default.contentsOfDirectory(atPath: root.appending(path: folder).path) {
        let isBesides = ["link", "debian", "prerequisites.sh"].contains(name) || name.hasPrefix("C")
        #expect(isBesides || text.contains(name.split(separator: ".")[0]), "\(folder)/\(name)")
      }
    }
    for page in try FileManager.default.contentsOfDirectory(atPath: root.appending(path: "packaging/man").path) {
      let parts = page.split(separator: ".")
      #expect(
        text.contains("[\(parts.dropLast().joined(separator: "."))(\(parts[parts.count - 1]))](packaging/man/\(page))"))
    }
  }
}
