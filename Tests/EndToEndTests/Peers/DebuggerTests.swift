import Foundation
import TestSupport
import Testing

/// The documented commands to run the daemon in a debugger.
struct DebuggerTests {
  @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/gdb"), "there is no gdb"))
  func `the documented debugger commands stop the daemon at a breakpoint`() throws {
    let commands = try Document(.development).commands(of: "debugger")
    try #require(commands.count == 2)
    #expect(commands[0] == "swift build --product identityd")
    let folder = try TemporaryFolder()
    // The programs under test may be in another folder, and two test runs must not share a socket.
    let debugger = commands[1].replacing(".build/debug", with: DaemonUnderTest.binaries.path)
      .replacing("/tmp/try", with: folder.path)
    let typed = "break main\nrun\nbacktrace\nkill\nquit\n"
    let result = try run(["sh", "-c", debugger], environment: ["DEBUGINFOD_URLS": ""], input: typed)
    #expect(result.output.contains("Breakpoint 1, "), "\(result)")
    #expect(result.output.contains("#0 "), "\(result)")
  }
}
