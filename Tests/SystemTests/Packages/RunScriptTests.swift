import Foundation
import TestSupport
import Testing

/// `packaging/run`, the first step for a user who wants to see the daemon work.
@Suite(.needs(Requirement.missingForPrograms), .timeLimit(.minutes(5)))
struct RunScriptTests {
  @Test func `packaging run shows the first answers and leaves nothing behind`() async throws {
    let programs = try #require(Requirement.programs)
    let folder = try TemporaryFolder()
    let home = URL(filePath: folder.path)
    let environment = [
      "IDENTITYD_BIN_DIR": programs.path, "XDG_RUNTIME_DIR": home.appending(path: "run").path,
      "XDG_STATE_HOME": home.appending(path: "state").path,
    ]
    // The command in the README.
    let words = try #require(Document(.readme).commands(of: "build").first).split(separator: " ").map(String.init)
    let script = checkout.appending(path: words[0])
    #expect(words == ["packaging/run", "--once"])

    let first = try await run(script, Array(words.dropFirst()), environment: environment)
    #expect(first.status == 0, "\(first.errors)")
    let lines = first.output.split(separator: "\n").map(String.init)
    for (question, answer) in [
      ("$ identityctl hello", "identityd "), ("$ identityctl whoami", "user:"), ("$ identityctl status", "version="),
    ] {
      let place = try #require(lines.firstIndex(of: question), "\(lines)")
      #expect(lines[place + 1].hasPrefix(answer), "\(lines)")
    }
    let socket = home.appending(path: "run/identityd/identityd.sock").path
    #expect(!FileManager.default.fileExists(atPath: socket))

    // Another run is another process with the same state.
    let second = try await run(script, Array(words.dropFirst()), environment: environment)
    #expect(second.status == 0, "\(second.errors)")
    #expect(try device(in: second.output) == device(in: first.output))
  }

  private func device(in output: String) throws -> String {
    let lines = output.split(separator: "\n").map(String.init)
    let place = try #require(lines.firstIndex(of: "$ identityctl get device"), "\(lines)")
    return try #require(UUID(uuidString: lines[place + 1]), "\(lines)").uuidString
  }
}
