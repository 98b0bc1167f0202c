import Foundation
import LinuxSystem
import TestSupport
import Testing

struct PathStatusTests {
  @Test func `kind, mode, owner and size are those of the file, or of the link itself`() throws {
    let folder = try TemporaryFolder()
    let path = "\(folder.path)/file"
    try Data("abc".utf8).write(to: URL(filePath: path))
    try #require(unsafe chmod(path, 0o4751) == 0)
    try #require(unsafe symlink(path, "\(folder.path)/link") == 0)
    var status = stat()
    try #require(unsafe stat(path, &status) == 0)
    let expected = PathStatus(
      .regular, owner: geteuid(), group: getegid(), mode: 0o4751, size: 3, changed: Int64(status.st_ctim.tv_sec))
    #expect(try PathStatus.of(path) == expected)
    #expect(try PathStatus.of("\(folder.path)/link") == expected)
    #expect(try PathStatus.of("\(folder.path)/link", followsLink: false)?.kind == .link)
    #expect(try PathStatus.of(folder.path)?.kind == .folder)
    #expect(try PathStatus.of("/dev/null")?.kind == .other)
    let socket = try UnixSocket.listen(at: "\(folder.path)/socket", mode: 0o600, backlog: 1)
    #expect(try PathStatus.of("\(folder.path)/socket")?.kind == .socket)
    _ = consume socket
  }

  @Test func `a missing path is nil, and an invalid path is an error`() throws {
    let folder = try TemporaryFolder()
    #expect(try PathStatus.of("\(folder.path)/none") == nil)
    try Data().write(to: URL(filePath: "\(folder.path)/file"))
    #expect(try PathStatus.of("\(folder.path)/file/below") == nil)
    #expect(throws: SystemError.self) { try PathStatus.of(String(repeating: "a", count: 5_000)) }
  }

  @Test func `free space is that of the file system of the path`() throws {
    let folder = try TemporaryFolder()
    let space = try FileSystemSpace(of: folder.path)
    #expect(space.freeBytes > 0)
    #expect(try FileSystemSpace(of: "/proc") == FileSystemSpace(freeBytes: 0, freeFiles: nil))
    #expect(throws: SystemError(call: "statvfs \(folder.path)/none", code: ENOENT)) {
      try FileSystemSpace(of: "\(folder.path)/none")
    }
  }
}
