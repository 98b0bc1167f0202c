import LinuxSystem
import TestSupport
import Testing

@Suite struct HostNameTests {
  @Test func `the name is that of uname`() throws {
    #expect(try run(["uname", "-n"]).output == "\(HostName.current ?? "")\n")
  }
}
