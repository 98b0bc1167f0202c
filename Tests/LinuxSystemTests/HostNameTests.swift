import LinuxSystem
import TestSupport
import Testing

struct HostNameTests {
  @Test func `the name is that of uname`() throws {
    #expect(try run(["uname", "-n"]).output == "\(HostName.current ?? "")\n")
  }
}
