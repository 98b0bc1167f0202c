import Foundation
import TestSupport
import Testing

extension Diagnosis {
  /// Runs `identityctl check` on a socket, and compares the exit status and the text with the JSON document.
  ///
  /// Each run is an examination of its own, and the system may change between two of them: a store recovers, a unit
  /// starts. So a text that differs counts only if the document is still the same after it. Otherwise the later document
  /// is compared with a later text.
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
    self = try Self.document(command)
    guard comparesText else { return }
    let deadline = Date(timeIntervalSinceNow: patience)
    while true {
      let text = try TestSupport.run(command)
      let differences = differences(from: text.output) + (text.status == (ok ? 0 : 8) ? [] : ["status \(text.status)"])
      guard !differences.isEmpty else { return }
      let after = try Self.document(command)
      guard after.outline != outline, Date() < deadline else {
        Issue.record("the text lacks \(differences): \(text.output)")
        return
      }
      self = after
    }
  }

  private static func document(_ command: [String]) throws -> Self {
    let result = try TestSupport.run(command + ["--json"])
    let document = try JSONDecoder().decode(Self.self, from: Data(result.output.utf8))
    #expect(result.status == (document.ok ? 0 : 8), "\(result)")
    #expect(result.errors == "")
    return document
  }

  /// The beginning of the line of each fault in the text, in order.
  private var heads: [String] {
    findings.map { found in
      (found.symptomOf.map { "symptom of \($0): " } ?? "") + "\(found.check) \(found.result):"
    }
  }

  /// The parts of the document that the text shows, too.
  private var outline: [[String]] { checks.map { [$0.name, $0.result] + $0.commands } + [heads] }

  /// Returns the parts of the document that are missing in a text.
  private func differences(from text: String) -> [String] {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    var differences: [String] = []
    for check in checks {
      let isShown = lines.contains {
        $0.split(separator: " ").prefix(2).map(String.init) == [check.name, check.result]
      }
      if !isShown { differences.append("\(check.name) \(check.result)") }
      differences += check.commands.filter { !lines.contains("    \($0)") }
    }
    // The faults are in the order of the document.
    let shown = lines.drop { $0 != "" }.filter { $0 != "" && !$0.hasPrefix("    ") }
    let isInOrder = shown.count == heads.count && zip(shown, heads).allSatisfy { $0.hasPrefix($1) }
    return differences + (isInOrder ? [] : heads)
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
