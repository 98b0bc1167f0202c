import Foundation
import LinuxSystem
import TestSupport
import Testing

struct FolderTests {
  private let temporary: TemporaryFolder
  init() throws { temporary = try TemporaryFolder() }

  @Test func `a file is replaced as a whole, with the requested mode`() throws {
    let folder = try Folder(path: temporary.path)
    try folder.replace("file", with: Array("one".utf8), mode: 0o600)
    #expect(try temporary.mode("file") == 0o600)
    try folder.replace("file", with: Array("another".utf8), mode: 0o700)
    #expect(try temporary.text("file") == "another")
    // The mode grants nothing to others, because the tests of sockets, which run at the same time, set the umask.
    #expect(try temporary.mode("file") == 0o700)
    #expect(try temporary.names() == ["file"])
  }

  @Test func `a replaced file is a new file, and readers of the old one are not disturbed`() throws {
    let folder = try Folder(path: temporary.path)
    try folder.replace("file", with: Array("one".utf8), mode: 0o600)
    let old = try folder.open("file", flags: O_RDONLY)
    let before = try #require(try folder.status(of: "file"))
    try folder.replace("file", with: Array("another".utf8), mode: 0o600)
    #expect(try folder.status(of: "file")?.inode != before.inode)
    #expect(try old.readWhole(limit: 10, name: "file") == Array("one".utf8))
  }

  @Test(arguments: ["file", "link", "fifo"])
  func `leftovers of an interrupted replacement do not hinder the next one`(left: String)
    throws
  {
    let folder = try Folder(path: temporary.path)
    try temporary.write("victim", "keep me")
    try temporary.write("file", "old")
    switch left {
    case "file": try temporary.write("file.new", "half")
    case "link": try temporary.link("file.new", to: "victim")
    default: try temporary.makeFIFO("file.new")
    }
    try folder.replace("file", with: Array("new".utf8), mode: 0o600)
    #expect(try temporary.text("file") == "new")
    #expect(try temporary.text("victim") == "keep me")
    #expect(try temporary.names() == ["file", "victim"])
  }

  @Test func `a failed replacement leaves the old file`() throws {
    let folder = try Folder(path: temporary.path)
    try temporary.write("file", "old")
    try temporary.makeFolder("file.new")
    #expect(throws: SystemError.self) { try folder.replace("file", with: Array("new".utf8), mode: 0o600) }
    #expect(try temporary.text("file") == "old")
  }

  @Test func `a symbolic link itself is replaced, and its target stays`() throws {
    let folder = try Folder(path: temporary.path)
    try temporary.write("victim", "keep me")
    try temporary.link("file", to: "victim")
    try folder.replace("file", with: Array("new".utf8), mode: 0o600)
    #expect(try temporary.text("victim") == "keep me")
    #expect(temporary.kind("file") == .typeRegular)
  }

  @Test(arguments: [O_RDONLY, O_WRONLY, O_RDWR | O_CREAT, O_WRONLY | O_TRUNC])
  func `row 19: a symbolic link is not opened`(flags: Int32) throws {
    let folder = try Folder(path: temporary.path)
    try temporary.write("victim", "keep me")
    try temporary.link("file", to: "victim")
    let error = try failure(of: SystemError.self) { _ = try folder.open("file", flags: flags, mode: 0o600).number }
    #expect(error == SystemError(call: "open \(temporary["file"])", code: ELOOP))
    #expect(try temporary.text("victim") == "keep me")
  }

  @Test(arguments: ["link", "file", "nothing"])
  func `a path that is no folder is not opened as one`(what: String) throws {
    try temporary.makeFolder("folder")
    try temporary.link("link", to: "folder")
    try temporary.write("file", "")
    let error = try failure(of: SystemError.self) { _ = try Folder(path: temporary[what]).path }
    #expect(error.call == "open \(temporary[what])")
    #expect([ENOTDIR, ELOOP, ENOENT].contains(error.code))
    #expect(try Folder(path: temporary["folder"]).path == temporary["folder"])
  }

  @Test(arguments: [(0, 0), (10, 10), (65_536, 70_000), (200_000, 200_000)])
  func `a file up to the limit is read completely`(length: Int, limit: Int) throws {
    let folder = try Folder(path: temporary.path)
    let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    try folder.replace("file", with: bytes, mode: 0o600)
    #expect(try folder.read("file", limit: limit) == bytes)
  }

  @Test(arguments: [(1, 0), (11, 10), (70_000, 65_536), (200_000, 199_999)])
  func `a file over the limit is refused`(length: Int, limit: Int) throws {
    let folder = try Folder(path: temporary.path)
    try folder.replace("file", with: [UInt8](repeating: 1, count: length), mode: 0o600)
    #expect(throws: SystemError(call: "read \(temporary["file"])", code: EFBIG)) {
      try folder.read("file", limit: limit)
    }
  }

  @Test func `a missing file is nil, and a link in its place is refused`() throws {
    let folder = try Folder(path: temporary.path)
    #expect(try folder.read("file", limit: 10) == nil)
    #expect(try folder.status(of: "file") == nil)
    try temporary.link("file", to: "nowhere")
    #expect(throws: SystemError(call: "open \(temporary["file"])", code: ELOOP)) { try folder.read("file", limit: 10) }
    #expect(try folder.status(of: "file")?.isRegular == false)
  }

  @Test(arguments: ["fifo", "folder"]) func `row 19: a FIFO or a folder is neither read nor waited for`(
    what: String
  )
    throws
  {
    let folder = try Folder(path: temporary.path)
    try temporary.makeFIFO("fifo")
    try temporary.makeFolder("folder")
    #expect(throws: SystemError(call: "read \(temporary[what])", code: EINVAL)) { try folder.read(what, limit: 10) }
  }

  @Test func `removing a missing file succeeds, and removing a link leaves its target`() throws {
    let folder = try Folder(path: temporary.path)
    try folder.remove("file")
    try temporary.write("victim", "keep me")
    try temporary.link("file", to: "victim")
    try folder.remove("file")
    #expect(try temporary.names() == ["victim"])
  }

  @Test func `missing folders of a path are made with the requested mode, and others left alone`() throws {
    try temporary.makeFolder("there")
    try FileManager.default.setAttributes([.posixPermissions: 0o750], ofItemAtPath: temporary["there"])
    try Folder.create(path: temporary["there/a/b"], mode: 0o700)
    #expect(try temporary.mode("there") == 0o750)
    #expect(try temporary.mode("there/a") == 0o700)
    #expect(try temporary.mode("there/a/b") == 0o700)
    try Folder.create(path: temporary["there/a/b"], mode: 0o755)
    #expect(try temporary.mode("there/a/b") == 0o700)
    let (owner, mode) = try Folder(path: temporary["there/a/b"]).ownerAndMode()
    #expect(owner == Accounts.ownUserID)
    #expect(mode == 0o700)
  }

  @Test func `a file in the place of a folder is an error that names it`() throws {
    try temporary.write("file", "")
    let error = try failure(of: SystemError.self) { try Folder.create(path: temporary["file/deeper"], mode: 0o700) }
    #expect(error == SystemError(call: "mkdir \(temporary["file/deeper"])", code: ENOTDIR))
  }
}

/// Repeats a question until the answer is true.
///
/// A program that another test starts at this moment inherits every descriptor until its exec. Until
/// then a socket answers.
func eventually(_ question: () throws -> Bool) rethrows -> Bool {
  for _ in 0..<10_000 {
    if try question() { return true }
    sched_yield()
  }
  return false
}
