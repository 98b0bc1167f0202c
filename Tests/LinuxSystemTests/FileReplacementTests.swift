import Glibc
import LinuxSystem
import TestSupport
import Testing

@Suite struct FileReplacementTests {
  @Test(arguments: [true, false]) func `the new file is there once it is whole, and not before`(isThere: Bool) throws {
    let folder = try TemporaryFolder()
    if isThere { try folder.write("file", "before") }
    let replacement = try FileReplacement(of: folder["file"])
    let draft = try replacement.begin()
    try draft.writeAll(Array("after".utf8))
    #expect(try folder.names().count == (isThere ? 2 : 1))
    if isThere { #expect(try folder.text("file") == "before") }
    try replacement.finish(draft)
    replacement.discard()
    #expect(try folder.text("file") == "after")
    #expect(try folder.names() == ["file"])
    #expect(try folder.mode("file") == 0o600)
  }

  @Test func `what is discarded leaves nothing, and the old file as it was`() throws {
    let folder = try TemporaryFolder()
    try folder.write("file", "before")
    let replacement = try FileReplacement(of: folder["file"])
    try replacement.begin().writeAll([1, 2, 3])
    replacement.discard()
    #expect(try folder.text("file") == "before")
    #expect(try folder.names() == ["file"])
  }

  @Test func `a link is followed, the last part and those before it`() throws {
    let folder = try TemporaryFolder()
    try folder.makeFolder("real")
    try folder.write("real/file", "before")
    try folder.link("short", to: "real")
    try folder.link("link", to: "short/file")
    let replacement = try FileReplacement(of: folder["link"])
    #expect(replacement.path == folder["real/file"])
    let draft = try replacement.begin()
    try draft.writeAll(Array("after".utf8))
    try replacement.finish(draft)
    #expect(try folder.text("real/file") == "after")
    #expect(try FileReplacement(of: folder["short/other"]).path == folder["short/other"])
  }

  @Test(
    arguments: [
      ("folder", EISDIR), ("folder/", EISDIR), ("to-folder", EISDIR), ("fifo", EINVAL), ("to-fifo", EINVAL),
      ("to-nothing", ENOENT), ("nothing/file", ENOENT), ("file/file", ENOTDIR), ("loop", ELOOP),
    ] as [(String, Int32)])
  func `nothing but a regular file is replaced`(name: String, code: Int32) throws {
    let folder = try TemporaryFolder()
    try folder.makeFolder("folder")
    try folder.write("file", "")
    try folder.makeFIFO("fifo")
    for target in ["folder", "fifo", "nothing"] { try folder.link("to-\(target)", to: target) }
    try folder.link("loop", to: "loop")
    let before = try folder.names()
    #expect(try failure(of: SystemError.self) { _ = try FileReplacement(of: folder[name]) }.code == code)
    #expect(try folder.names() == before)
  }
}
