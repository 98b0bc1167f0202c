import Glibc
import LinuxSystem
import TestSupport
import Testing

struct FileReplacementTests {
  @Test(arguments: [true, false]) func `the new file appears only when it is complete`(isThere: Bool) throws {
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

  @Test func `a discarded replacement leaves nothing but the old file`() throws {
    let folder = try TemporaryFolder()
    try folder.write("file", "before")
    let replacement = try FileReplacement(of: folder["file"])
    try replacement.begin().writeAll([1, 2, 3])
    replacement.discard()
    #expect(try folder.text("file") == "before")
    #expect(try folder.names() == ["file"])
  }

  @Test func `links in the path of the folder are followed`() throws {
    let folder = try TemporaryFolder()
    try folder.makeFolder("real")
    try folder.link("short", to: "real")
    let replacement = try FileReplacement(of: folder["short/file"])
    let draft = try replacement.begin()
    try draft.writeAll(Array("after".utf8))
    try replacement.finish(draft)
    #expect(try folder.text("real/file") == "after")
  }

  @Test func `a link or folder that is swapped in meanwhile does not redirect the write`() throws {
    let folder = try TemporaryFolder()
    try folder.makeFolder("theirs")
    try folder.makeFolder("root")
    try folder.write("root/file", "before")
    let replacement = try FileReplacement(of: folder["theirs/file"])
    let draft = try replacement.begin()
    try draft.writeAll(Array("after".utf8))
    // The owner of the folder replaces first the file and then the folder with links to others.
    try folder.link("theirs/file", to: "../root/file")
    #expect(unsafe rename(folder["theirs"], folder["moved"]) == 0)
    try folder.link("theirs", to: "root")
    try replacement.finish(draft)
    #expect(try folder.text("root/file") == "before")
    #expect(try folder.text("moved/file") == "after")
  }

  @Test(
    arguments: [
      ("folder", EISDIR), ("folder/", EISDIR), ("to-folder", ELOOP), ("fifo", EINVAL), ("to-fifo", ELOOP),
      ("to-file", ELOOP), ("to-nothing", ELOOP), ("nothing/file", ENOENT), ("file/file", ENOTDIR), ("loop", ELOOP),
    ] as [(String, Int32)])
  func `only a regular file is replaced`(name: String, code: Int32) throws {
    let folder = try TemporaryFolder()
    try folder.makeFolder("folder")
    try folder.write("file", "")
    try folder.makeFIFO("fifo")
    for target in ["folder", "fifo", "file", "nothing"] { try folder.link("to-\(target)", to: target) }
    try folder.link("loop", to: "loop")
    let before = try folder.names()
    #expect(try failure(of: SystemError.self) { _ = try FileReplacement(of: folder[name]) }.code == code)
    #expect(try folder.names() == before)
  }
}
