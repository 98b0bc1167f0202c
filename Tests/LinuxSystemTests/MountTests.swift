import Foundation
import TestSupport
import Testing

@testable import LinuxSystem

struct MountTests {
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

  @Test(arguments: [
    ("10 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro", false, false),
    ("10 1 8:1 / / ro,nosuid,relatime master:44 shared:3 - tmpfs tmpfs rw,mode=700", true, false),
    ("10 1 8:1 / / rw - ext4 /dev/sda1 ro", false, true),
    // Spaces in names are escaped, and an optional source is empty or a hyphen.
    ("10 1 8:1 / /a\\040b ro,noexec - fuse.x - ro", true, true),
  ])
  func `a mount and its file system are read-only independently of each other`(
    line: String, mount: Bool, fileSystem: Bool
  ) throws {
    let other = "100 1 8:1 / /other ro - ext4 /dev/sdb ro\n"
    let found = try #require(Mount.identified(by: "10", in: other + line + "\n"))
    #expect(found.isMountReadOnly == mount)
    #expect(found.isFileSystemReadOnly == fileSystem)
  }

  @Test(arguments: ["", "10", "10 1 8:1 / / ro", "10 1 8:1 / / ro - ext4", "11 1 8:1 / / ro - ext4 /dev/sda1 ro"])
  func `a text that lacks the mount yields none`(text: String) {
    #expect(Mount.identified(by: "10", in: text) == nil)
  }

  @Test(.enabled(if: isRoot, "mounting needs root"))
  func `the kernel reports the flags of a folder's mount`() throws {
    let folder = try TemporaryFolder()
    func mount(_ arguments: String...) throws {
      try #require(try run(["mount"] + arguments + [folder.path]).status == 0)
    }
    func flags() throws -> [Bool] {
      let mount = try #require(try Folder(path: folder.path).mount())
      return [mount.isMountReadOnly, mount.isFileSystemReadOnly]
    }
    try mount("-t", "tmpfs", "tmpfs")
    defer { _ = try? run(["umount", folder.path]) }
    #expect(try flags() == [false, false])
    try mount("-o", "remount,bind,ro")
    #expect(try flags() == [true, false])
    try mount("-o", "remount,ro")
    #expect(try flags() == [true, true])
    try mount("-o", "remount,rw")
    #expect(try flags() == [false, false])
  }
}
