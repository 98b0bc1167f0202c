import IdentityClient
import TestSupport
import Testing

/// The Swift lines of the tour and of the README, run against the real daemon. DocumentCoverageTests compares them with both.
struct DocumentExampleTests {
  @Test func `the tour's example of the library works`() async throws {
    let daemon = try DaemonUnderTest().start()
    let client = IdentityClient(socket: daemon.socket)
    let device = try await client.ask(.identifier(.device)).uuid
    let version = try await client.ask(.reportVersion("1.4.2"))
    print(device, version.state)
    #expect(device.description == (try daemon.uuid("get device")))
    #expect(version.state == .installed)
  }
}
