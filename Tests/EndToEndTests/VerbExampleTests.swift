import IdentityWire
import TestSupport
import Testing

@Suite struct VerbExampleTests {
  /// Matches a line against one with `<uuid>`, `<time>`, `<number>`, `<word>` and a last `…`.
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

  @Test(arguments: VerbTable.verbs.flatMap { verb in verb.examples.map { [$0.request] + $0.reply } })
  func `an example in the verb table is what the daemon does`(example: [String]) throws {
    let daemon = try DaemonUnderTest().start()
    let answer = try daemon.client().ask(example[0])
    let wanted = Array(example.dropFirst())
    var remaining = answer[...]
    for (index, pattern) in wanted.enumerated() {
      if pattern == "…" {
        // Any rows up to the next pattern.
        let left = wanted.count - index - 1
        #expect(remaining.count >= left)
        remaining = remaining.suffix(left)
        continue
      }
      guard let line = remaining.popFirst() else { throw Failure("\(answer) is shorter than \(wanted)") }
      #expect(matches(line, pattern), "\(line) is not \(pattern)")
    }
    #expect(remaining.isEmpty, "\(answer) is longer than \(wanted)")
  }

  @Test func `every verb has an example`() {
    for verb in VerbTable.verbs { #expect(!verb.examples.isEmpty, "\(verb.words)") }
  }
}
