import LinuxSystem
import Testing

@Suite struct MountTests {
  private static let list = """
    21 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
    22 21 0:20 / /proc rw - proc proc rw
    30 21 8:1 / /var rw,noatime shared:1 - ext4 /dev/sda1 ro
    31 30 8:2 / /var/lib/a\\040b ro,relatime shared:2 master:1 - xfs /dev/sdb rw
    32 30 0:40 / /var/lib/over ro - tmpfs tmpfs rw
    33 30 0:41 / /var/lib/over rw - tmpfs tmpfs rw
    nonsense

    """

  @Test(
    arguments: [
      ("/etc", "/", false), ("/", "/", false), ("/various", "/", false), ("/var", "/var", true),
      ("/var/lib/identityd", "/var", true), ("/var/lib/a b", "/var/lib/a b", true), ("/var/lib/a bc", "/var", true),
      ("/var/lib/over/x", "/var/lib/over", false),
    ])
  func `a path is on the innermost and latest mount`(path: String, mount: String, isReadOnly: Bool) throws {
    let found = try #require(Mount.containing(path, in: Self.list))
    #expect(found.path == mount)
    #expect(found.isReadOnly == isReadOnly)
  }

  @Test func `a path without a mount has none`() {
    #expect(Mount.containing("/etc", in: "") == nil)
    #expect(Mount.containing("/nonexistent", for: "self") == nil)
  }

  @Test func `the mounts of this process are read`() throws {
    let found = try #require(Mount.containing("/proc", for: "self"))
    #expect(found == Mount.containing("/proc/version", for: "self"))
    #expect(found.path == "/proc")
  }
}
