import Foundation
import TestSupport
import Testing

/// The example of the fleet in the README.
struct FleetDocumentTests {
  @Test func `each of three machines on one lists all three`() throws {
    let folder = try TemporaryFolder()
    let (descriptor, port) = try BrokerUnderTest.listener()
    close(descriptor)
    let commands = try Document(.readme).commands(of: "fleet").map { $0.replacing("18830", with: "\(port)") }
    let last = try #require(commands.last)
    // The last command runs until each machine lists all of them, at most five minutes. What was started ends with it.
    let script = """
      cd '\(folder.path)'
      trap 'kill $(jobs -p) && wait' EXIT
      \(commands.dropLast().joined(separator: "\n"))
      for turn in $(seq 600); do
        [ "$( { \(last); } | wc --lines)" != 9 ] || exit 0
        sleep 0.5
      done
      tail --lines=5 */log
      exit 1
      """
    let path = "\(DaemonUnderTest.binaries.path):/usr/sbin:/usr/bin:/bin"
    let result = try run(["timeout", "300", "bash", "-c", script], environment: ["PATH": path])
    #expect(result.status == 0, "\(result)")
  }
}
