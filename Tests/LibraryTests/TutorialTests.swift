import Glibc
import IdentityClient
import LinuxSystem
import TestSupport
import Testing

/// Collects the log lines of the tutorial's code, so that they do not mix with the tests' output.
func log(_ text: String) { logged.withLock { $0.append(text) } }
private let logged = Locked<[String]>([])

/// Tests of the tutorial's code, as it is shown, against the real daemon.
struct TutorialTests {
  @Test func `a program learns its identity`() async throws {
    let daemon = try DaemonUnderTest().start()
    let identity = try await identify(with: IdentityClient(socket: daemon.socket))
    #expect(identity.device.description == (try daemon.uuid("get device")))
    #expect(identity.installation.description == (try daemon.uuid("get installation")))
    #expect(try daemon.ask("whoami").hasPrefix("OK \(identity.app) "))
  }

  @Test func `a password is stored and read again`() async throws {
    let daemon = try DaemonUnderTest().start()
    let client = IdentityClient(socket: daemon.socket)
    #expect(try await password(with: client) == nil)
    try await keep(Secret("first"), with: client)
    try await keep(Secret("correct horse"), with: client)
    #expect(try await password(with: client).map(text) == "correct horse")
  }

  @Test func `work after an upgrade runs once`() async throws {
    let daemon = try DaemonUnderTest().start()
    let client = IdentityClient(socket: daemon.socket)
    // All reports of one session get the same answer, so another process makes the earlier report.
    #expect(try identityctl(daemon, "version", "report", "0.9").status == 0)
    var runs = 0
    for _ in 0..<3 { try await start(version: "1.0", with: client) { runs += 1 } }
    #expect(runs == 1)
  }

  @Test func `the device identifier and its changes are passed on`() async throws {
    let daemon = try DaemonUnderTest().start()
    let client = IdentityClient(socket: daemon.socket)
    let handed = Locked<[IdentityUUID]>([])
    let task = Task { try await followDevice(with: client) { device in handed.withLock { $0.append(device) } } }
    try await eventually { !handed.withLock { $0.isEmpty } }
    let renewal = try await client.ask(.renew(.device))
    try await eventually { handed.withLock { $0.last } == renewal.uuid }
    #expect(handed.withLock { $0.first } == renewal.previous)
    #expect(daemon.end(with: SIGKILL) == 128 + SIGKILL)
    try daemon.start()
    let again = try await client.ask(.renew(.device))
    try await eventually { handed.withLock { $0.last } == again.uuid }
    task.cancel()
    try await task.value
  }
}
