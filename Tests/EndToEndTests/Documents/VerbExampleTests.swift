import Foundation
import IdentityWire
import TestSupport
import Testing

struct VerbExampleTests {
  /// Returns whether a line matches a pattern with `<uuid>`, `<time>`, `<number>`, `<word>` and a final `…`.
  private func matches(_ line: String, _ pattern: String) -> Bool {
    if pattern == "…" { return true }
    let given = line.split(separator: " ", omittingEmptySubsequences: false)
    let wanted = pattern.split(separator: " ", omittingEmptySubsequences: false)
    for (index, part) in wanted.enumerated() {
      if part == "…" { return true }
      guard index < given.count, matchesWord(String(given[index]), String(part)) else { return false }
    }
    return given.count == wanted.count
  }

  private func matchesWord(_ word: String, _ pattern: String) -> Bool {
    let kinds: [(name: String, test: (Substring) -> Bool)] = [
      ("<uuid>", { $0.count == 36 && $0.allSatisfy { "0123456789abcdef-".contains($0) } }),
      ("<time>", { $0.count == 24 && $0.hasSuffix("Z") }),
      ("<number>", { Int($0) != nil }),
      ("<word>", { !$0.isEmpty }),
    ]
    for kind in kinds where pattern.hasSuffix(kind.name) {
      let head = pattern.dropLast(kind.name.count)
      return word.hasPrefix(head) && kind.test(word.dropFirst(head.count))
    }
    return word == pattern
  }

  /// Describes how an answer differs from the lines of an example. Nil if it does not differ.
  private func difference(_ answer: [String], _ wanted: [String]) -> String? {
    var remaining = answer[...]
    for (index, pattern) in wanted.enumerated() {
      if pattern == "…" {
        // Any rows up to the next pattern.
        let left = wanted.count - index - 1
        guard remaining.count >= left else { return "\(answer) is shorter than \(wanted)" }
        remaining = remaining.suffix(left)
        continue
      }
      guard let line = remaining.popFirst() else { return "\(answer) is shorter than \(wanted)" }
      guard matches(line, pattern) else { return "'\(line)' is not '\(pattern)'" }
    }
    return remaining.isEmpty ? nil : "\(answer) is longer than \(wanted)"
  }

  /// Runs the examples of a family in order against one daemon, because they build on each other. Each has its
  /// own connection.
  @Test(.enabled(if: isRoot, "some examples are for admins"), arguments: VerbTable.families.map(\.name))
  func `the daemon's answers match the examples of every family`(name: String) throws {
    let daemon = try DaemonUnderTest().start()
    let family = try #require(VerbTable.families.first { $0.name == name })
    for example in family.verbs.flatMap(\.examples) {
      let client = try daemon.client()
      let answer = try client.ask(example.request)
      #expect(difference(answer, example.reply) == nil, "\(example.request)")
      // The end of the stream shows that the daemon no longer counts the connection.
      try client.endWriting()
      _ = try client.rest()
    }
  }

  /// Runs the examples of the fleet's service in order against one service, whose broker does not exist.
  @Test func `the answers of the fleet's service match the examples of its requests`() throws {
    let device = try FleetUnderTest("Broker=mqtt://127.0.0.1:1")
    for example in ControlVerb.allCases.flatMap(\.declaration.examples) {
      let answer = try device.ask(example.request)
      #expect(difference(answer, example.reply) == nil, "\(example.request)")
    }
  }

  /// Runs the examples of a family with `identityctl --json`, in order against one daemon.
  @Test(.enabled(if: isRoot, "some examples are for admins"), arguments: VerbTable.families.map(\.name))
  func `the JSON of every example has the names and types of the schema`(name: String) throws {
    let daemon = try DaemonUnderTest().start()
    let family = try #require(VerbTable.families.first { $0.name == name })
    var documents: [(definition: String, document: String)] = []
    for verb in family.verbs {
      // Of these, identityctl makes commands with a file.
      guard !["backup", "restore"].contains(verb.words.split(separator: " ").first) else { continue }
      for example in verb.examples {
        let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
        let result = try run(
          ["sh", "-c", "'\(program)' --json --yes \(example.request)"], environment: ["IDENTITYD_SOCKET": daemon.socket]
        )
        let isRefused = example.reply[0].hasPrefix("ERR ")
        #expect(
          result.output.hasPrefix("{\"error\":") == isRefused && result.errors == "", "\(example.request) \(result)")
        documents.append((isRefused ? "error" : verb.words, result.output))
      }
    }
    #expect(try JSONSchema.faults(in: documents) == "")
  }

  @Test func `every verb has an example`() {
    let verbs = VerbTable.verbs.map(\.declaration) + ControlVerb.allCases.map(\.declaration)
    for verb in verbs { #expect(!verb.examples.isEmpty, "\(verb.words)") }
  }
}
