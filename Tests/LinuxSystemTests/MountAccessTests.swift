import Foundation
import TestSupport
import Testing

@testable import LinuxSystem

@Suite struct MountAccessTests {
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
    let access = try #require(MountAccess(mount: "10", in: other + line + "\n"))
    #expect(access.isMountReadOnly == mount)
    #expect(access.isFileSystemReadOnly == fileSystem)
  }

  @Test(arguments: ["", "10", "10 1 8:1 / / ro", "10 1 8:1 / / ro - ext4", "11 1 8:1 / / ro - ext4 /dev/sda1 ro"])
  func `text that lacks the mount has no access`(text: String) { #expect(MountAccess(mount: "10", in: text) == nil) }

  @Test(.enabled(if: isRoot, "mounting needs root"))
  func `the kernel reports the access of a folder's mount`() throws {
    let folder = try TemporaryFolder()
    func mount(_ arguments: String...) throws {
      try #require(try run(["mount"] + arguments + [folder.path]).status == 0)
    }
    func access() throws -> [Bool] {
      let access = try #require(try Folder(path: folder.path).mountAccess())
      return [access.isMountReadOnly, access.isFileSystemReadOnly]
    }
    try mount("-t", "tmpfs", "tmpfs")
    defer { _ = try? run(["umount", folder.path]) }
    #expect(try access() == [false, false])
    try mount("-o", "remount,bind,ro")
    #expect(try access() == [true, false])
    try mount("-o", "remount,ro")
    #expect(try access() == [true, true])
    try mount("-o", "remount,rw")
    #expect(try access() == [false, false])
  }
}
