import Foundation
import TestSupport
import Testing

/// The defences against memory faults in the packaged programs.
@Suite(.serialized, .needs(Requirement.missingForPackages), .timeLimit(.minutes(5)))
struct ProgramDefenceTests {
  private static let programs = ["usr/sbin/identityd", "usr/bin/identityctl"]
  private let scratch: TemporaryFolder
  private let built: URL

  init() async throws {
    scratch = try TemporaryFolder()
    built = try #require(Requirement.programs)
    for package in try #require(Requirement.debs) {
      try await tool("dpkg-deb", "--extract", package.path, scratch.path)
    }
  }

  /// Runs a program, which must succeed.
  @discardableResult
  private func tool(_ name: String, _ arguments: String...) async throws -> String {
    let outcome = try await run(URL(filePath: "/usr/bin/\(name)"), arguments)
    guard outcome.status == 0 else { throw Failure("\(name) \(arguments): \(outcome)") }
    return outcome.output
  }

  @Test(arguments: programs)
  func `a program loads only system libraries, bound at the start and read-only`(program: String) async throws {
    let facts = try await tool("readelf", "--wide", "--dynamic", "--program-headers", scratch[program])
    #expect(!facts.contains(#/\((RPATH|RUNPATH|TEXTREL)\)/#))
    #expect(facts.contains(#/Flags: NOW PIE/#))
    #expect(facts.contains("GNU_RELRO"))
    let stack = try #require(facts.split(separator: "\n").first { $0.contains("GNU_STACK") })
    #expect(stack.contains(" RW ") && !stack.contains("RWE"))
  }

  /// Returns the disassembled functions of CLinux in a program, by name.
  ///
  /// The packaged program is stripped. So the names come from the program that it was made from, whose code is
  /// identical to the last bit.
  private func code(of program: String) async throws -> [String: [Substring]] {
    let named = built.appending(path: URL(filePath: program).lastPathComponent).path
    for (file, copy) in [(named, "built"), (scratch[program], "shipped")] {
      try await tool("objcopy", "--output-target=binary", "--only-section=.text", file, scratch[copy])
    }
    try #require(try await tool("cmp", scratch["built"], scratch["shipped"]) == "")
    // Leaves out the other functions, which are a million lines.
    let script = """
      objdump --disassemble --no-show-raw-insn --section=.text "$0" |
        awk '/^$/ { own = 0 } / <clinux_.*>:$/ { own = 1 } own'
      """
    let text = try await tool("bash", "-euo", "pipefail", "-c", script, named)
    var functions: [String: [Substring]] = [:]
    var name: String?
    for line in text.split(separator: "\n") {
      if let start = line.firstMatch(of: /^[0-9a-f]+ <([^>]+)>:$/) {
        name = String(start.1)
      } else if let name {
        functions[name, default: []].append(line)
      }
    }
    return functions
  }

  @Test(arguments: programs)
  func `the C code checks sizes and the stack, and has marked jump targets`(program: String) async throws {
    let functions = try await code(of: program)
    #expect(functions.count > 10)
    // The permitted targets of indirect jumps (Intel CET, Arm BTI). The property note of the program does not mention
    // them: a linker sets it only if each object has it, and the objects of Swift's runtime do not.
    let landing = #/\t(endbr64|bti\s+c|paciasp)/#
    for (name, lines) in functions { #expect(lines.first?.contains(landing) == true, "\(name): \(lines.prefix(2))") }
    let all = functions.values.joined()
    #expect(all.contains { $0.contains("__memcpy_chk@") })
    #expect(all.contains { $0.contains("__stack_chk_fail@") })
    let called = try await tool("readelf", "--wide", "--dyn-syms", scratch[program])
    #expect(called.contains("__memcpy_chk@GLIBC") && called.contains("__stack_chk_fail@GLIBC"))
  }

  @Test func `the compiler had the options that cannot be seen in the code`() async throws {
    // No function of CLinux has more than a page on the stack, so none has stack probes.
    let plan = built.deletingLastPathComponent().deletingLastPathComponent().appending(path: "release.yaml")
    let lines = try String(contentsOf: plan, encoding: .utf8).split(separator: "\n")
    let commands = lines.filter { $0.contains("CLinux.c.o\"") && $0.contains("args:") }
    #expect(!commands.isEmpty)
    for command in commands {
      for option in ["-D_FORTIFY_SOURCE=3", "-fstack-clash-protection", "-fstack-protector-strong"] {
        #expect(command.contains("\"\(option)\""), "\(command)")
      }
    }
  }
}
