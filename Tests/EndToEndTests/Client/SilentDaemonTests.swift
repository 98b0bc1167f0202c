import Foundation
import LinuxSystem
import TestSupport
import Testing

/// `identityctl` at a socket whose listener never answers.
struct SilentDaemonTests {
  private static let program = DaemonUnderTest.binaries.appending(path: "identityctl").path

  @Test(arguments: [["ping"], ["item", "read", "service=s", "account=a", "--raw"], ["stats", "--prometheus"]])
  func `a listener that never answers ends the request with status 6`(words: [String]) throws {
    let folder = try TemporaryFolder()
    let path = "\(folder.path)/socket"
    let listener = try boundSocket(SOCK_STREAM, to: path)
    try system("listen") { listen(listener.number, 5) }
    let result = try run([Self.program, "--socket=\(path)", "--timeout=0.2"] + words)
    #expect(result.status == 6 && result.output.isEmpty, "\(result)")
    #expect(result.errors.contains("did not answer in time") && result.errors.contains("--timeout"), "\(result)")
  }

  @Test func `a full accept queue ends the request with status 6`() throws {
    let folder = try TemporaryFolder()
    let path = "\(folder.path)/socket"
    let listener = try boundSocket(SOCK_STREAM, to: path)
    try system("listen") { listen(listener.number, 0) }
    let holder = try UnixSocket.connect(to: path)
    let result = try run([Self.program, "--socket=\(path)", "--timeout=0.2", "ping"])
    #expect(result.status == 6, "\(result)")
    _ = holder.number
  }
}
