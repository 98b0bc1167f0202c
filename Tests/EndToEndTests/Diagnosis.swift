import Foundation
import TestSupport
import Testing

extension Diagnosis {
  /// Runs `identityctl check` on a socket, and compares the exit status and the text with the JSON document.
  ///
  /// - Parameters:
  ///   - wrapper: the command that runs the client.
  ///   - comparesText: false to skip the run with text output, for a check that takes seconds.
  init(
    of socket: String, through wrapper: [String] = [], asUser user: Int? = nil, comparesText: Bool = true
  ) throws {
    let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
    let identity = user.map { ["setpriv", "--reuid=\($0)", "--regid=\($0)", "--clear-groups"] } ?? []
    let command = wrapper + identity + [program, "--socket=\(socket)", "check"]
    let document = try Self.run(command + ["--json"])
    self = try JSONDecoder().decode(Self.self, from: Data(document.output.utf8))
    #expect(document.status == (ok ? 0 : 8), "\(document)")
    #expect(document.errors == "")
    guard comparesText else { return }
    let text = try Self.run(command)
    #expect(text.status == document.status)
    let lines = text.output.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    for check in checks {
      #expect(
        lines.contains { $0.split(separator: " ").prefix(2).map(String.init) == [check.name, check.result] },
        "\(check) \(text.output)")
      for command in check.commands { #expect(lines.contains("    \(command)"), "\(text.output)") }
    }
    // The faults are in the order of the document.
    let heads = findings.map { found in
      (found.symptomOf.map { "symptom of \($0): " } ?? "") + "\(found.check) \(found.result): "
    }
    let shown = lines.drop { $0 != "" }.filter { $0 != "" && !$0.hasPrefix("    ") }
    #expect(shown.count == heads.count && zip(shown, heads).allSatisfy { $0.hasPrefix($1) }, "\(text.output)")
  }

  private static func run(_ command: [String]) throws -> (status: Int32, output: String, errors: String) {
    try TestSupport.run(command)
  }
}

extension DaemonUnderTest {
  /// Runs `identityctl check` on this daemon.
  func diagnosis(asUser user: Int? = nil) throws -> Diagnosis { try Diagnosis(of: socket, asUser: user) }

  /// Runs the repair command of a check.
  func mend(_ entry: some Repairable, copy: String = "", editor: String = "false") throws {
    let command = try #require(entry.command(copy: copy))
    let result = try run(["bash", "-c", command], environment: ["EDITOR": editor])
    try #require(result.status == 0, "\(command): \(result)")
  }
}
