import Foundation
import TestSupport
import Testing

/// The commands of the documents, run to compare their output with the output that the documents show.
@Suite(.tags(.plain)) struct DocumentTests {
  /// The documents with `console` blocks. Each is one shell session.
  static let sessions = [Document.File.readme, .tour]

  /// Whether to replace the output in the documents with the real output.
  private let updates = ProcessInfo.processInfo.environment["IDENTITYD_UPDATE_README"] != nil

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

  @Test(.enabled(if: DocumentShell.missing == nil, "there is no sandbox to run commands in"), arguments: sessions)
  func `each command that it shows does what it shows`(file: Document.File) throws {
    let document = try Document(file)
    let steps = document.steps
    #expect(steps.count > (file == .tour ? 40 : 7))
    let shell = try DocumentShell()
    // The README shows a system with the packages installed. The tour starts its own daemon.
    if file == .readme { try shell.serve() }
    var comparison = DocumentComparison(typed: steps.map(\.command))
    var outputs: [[String]] = []
    for step in steps {
      let output = try output(of: step, in: shell, comparison)
      let isAsShown = isAsShown(output, step, &comparison)
      guard isAsShown || updates else {
        throw Failure(
          """
          \(file.rawValue):\(step.line): $ \(step.command)
          it shows:
          \(step.output.joined(separator: "\n"))
          what came, with status \(output.status):
          \(output.lines.joined(separator: "\n"))
          """)
      }
      outputs.append(isAsShown ? step.output : output.lines.map(comparison.asShown))
    }
    if updates { try write(outputs, of: steps, to: document) }
  }

  /// Types a command and waits for the output that the document shows.
  private func output(
    of step: Document.Step, in shell: DocumentShell, _ comparison: DocumentComparison
  ) throws -> DocumentShell.Output {
    let wanted = Sorted(step.output)
    var turns = 0
    return try shell.type(step.command) { lines in
      let got = Sorted(lines)
      turns += 1
      // The output to wait for is unknown: takes all output of one second.
      guard !updates else { return turns > 100 }
      var next = comparison
      guard next.take(wanted.foreground, got.foreground) else { return true }
      return got.log.count >= wanted.log.count && got.events.count >= wanted.events.count
    }
  }

  /// Returns whether a command succeeded with the output that the document shows.
  private func isAsShown(
    _ output: DocumentShell.Output, _ step: Document.Step, _ comparison: inout DocumentComparison
  ) -> Bool {
    guard output.status == 0 else { return false }
    let (wanted, got) = (Sorted(step.output), Sorted(output.lines))
    for (lines, others) in [
      (wanted.foreground, got.foreground), (wanted.log, got.log), (wanted.events, got.events),
    ] where !comparison.take(lines, others) { return false }
    return true
  }

  /// Replaces the output in the document with the real output.
  private func write(_ outputs: [[String]], of steps: [Document.Step], to document: Document) throws {
    var lines = document.lines
    for (step, output) in zip(steps, outputs).reversed() {
      lines.replaceSubrange(step.line..<(step.line + step.output.count), with: output)
    }
    try Data(lines.joined(separator: "\n").utf8).write(to: document.file.url)
  }

  @Test(.enabled(if: DocumentShell.missing == nil, "there is no sandbox to run commands in"))
  func `a command can change nothing but what is below the temporary folder`() throws {
    let shell = try DocumentShell()
    let readme = Document.File.readme.url.path
    for path in [readme, "/etc/passwd", "/var/tmp/file", "/dev/shm/../../run/file", "packaging/run"] {
      let output = try shell.type("touch \(path) 2>/dev/null || echo refused") { $0 == ["refused"] }
      #expect(output.lines == ["refused"], "\(path)")
    }
    #expect(try shell.type("touch /tmp/tour/file && echo done") { !$0.isEmpty }.lines == ["done"])
  }

  @Test(.enabled(if: ProcessInfo.processInfo.environment["CI"] == "true", "only a build server has to run everything"))
  func `a build server has the sandbox`() { #expect(DocumentShell.missing == nil) }

  @Test func `the client in Python is answered`() throws {
    let daemon = try DaemonUnderTest().start()
    let blocks = try Document(.tour).blocks.filter { $0.language == "python" }
    #expect(!blocks.isEmpty)
    for block in blocks {
      let result = try run(
        ["python3", "-c", block.lines.joined(separator: "\n")], environment: ["IDENTITYD_SOCKET": daemon.socket])
      let answer = try daemon.ask("get device")
      #expect(result.output == "\(answer)\n", "\(result)")
    }
  }
}
