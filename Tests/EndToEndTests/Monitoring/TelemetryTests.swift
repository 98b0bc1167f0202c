import Foundation
import TestSupport
import Testing

/// `identityctl env otel`: an environment variable for programs of OpenTelemetry.
struct TelemetryTests {
  private let daemon: DaemonUnderTest

  init() throws { daemon = try DaemonUnderTest().start() }

  private func variable(_ environment: String...) throws -> String {
    let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
    let answer = try run(["env"] + environment + [program, "--socket=\(daemon.socket)", "env", "otel"])
    #expect(answer.status == 0, "\(answer)")
    return answer.output
  }

  @Test func `the variable has the identifiers of the device and of the launch`() throws {
    let device = try daemon.uuid("get device")
    let first = try variable()
    let pattern = #/OTEL_RESOURCE_ATTRIBUTES=host\.id=([0-9a-f-]{36}),service\.instance\.id=([0-9a-f-]{36})\n/#
    let match = try #require(try pattern.wholeMatch(in: first), "\(first)")
    #expect(match.output.1 == device && match.output.2 != device)
    // Outside of a service, each call is a launch.
    let second = try #require(try pattern.wholeMatch(in: variable()))
    #expect(second.output.1 == device && second.output.2 != match.output.2)
  }

  @Test func `the device has an attribute of its own only if that is asked for`() throws {
    let device = try daemon.uuid("get device")
    #expect(try variable("IDENTITYD_OTEL_DEVICE_ID=yes").hasSuffix(",device.id=\(device)\n"))
    #expect(try !variable("IDENTITYD_OTEL_DEVICE_ID=no").contains("device.id"))
  }

  @Test func `attributes that the variable has already are kept`() throws {
    let variable = try variable("OTEL_RESOURCE_ATTRIBUTES=service.name=web,a=b%20c")
    #expect(variable.hasPrefix("OTEL_RESOURCE_ATTRIBUTES=service.name=web,a=b%20c,host.id="))
  }

  @Test(arguments: [["env"], ["env", "otel", "x"], ["env", "other"]])
  func `other words are a usage error`(words: [String]) throws {
    let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
    #expect(try run([program, "--socket=\(daemon.socket)"] + words).status == 2)
  }
}
