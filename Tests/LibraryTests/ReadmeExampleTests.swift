import IdentityClient
import TestSupport
import Testing

/// The Swift lines in README.md, run against the real daemon. ReadmeTests compares them with the README.
@Suite struct ReadmeExampleTests {
  @Test func `what the README shows of the library is so`() async throws {
    let daemon = try DaemonUnderTest().start()
    let client = IdentityClient(socket: daemon.socket)
    let device = try await client.ask(.identifier(.device)).uuid
    let version = try await client.ask(.reportVersion("1.4.2"))
    print(device, version.state)
    #expect(device.description == (try daemon.uuid("get device")))
    #expect(version.state == .installed)
  }
}
