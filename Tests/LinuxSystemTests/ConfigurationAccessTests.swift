import Glibc
import LinuxSystem
import TestSupport
import Testing

struct ConfigurationAccessTests {
  private let temporary: TemporaryFolder
  init() throws { temporary = try TemporaryFolder() }

  private func read(_ name: String, limit: Int = 100) throws -> ConfigurationAccess.Content {
    try ConfigurationAccess.read(path: temporary[name], limit: limit)
  }

  @Test func `a file is read, also through links`() throws {
    try temporary.write("file", "content")
    try temporary.link("link", to: "file")
    try temporary.link("link to the link", to: "link")
    for name in ["file", "link", "link to the link"] { #expect(try read(name) == .bytes(Array("content".utf8))) }
  }

  @Test func `an empty file is not missing`() throws {
    try temporary.write("file", "")
    #expect(try read("file") == .bytes([]))
  }

  @Test func `a missing file, a dangling link and a path below a file are all missing`() throws {
    try temporary.write("file", "")
    try temporary.link("link", to: "nowhere")
    for name in ["nothing", "link", "file/below", "no folder/file"] { #expect(try read(name) == .missing) }
  }

  @Test func `a link to dev null masks`() throws {
    try temporary.link("masked", to: "/dev/null")
    try temporary.link("masked too", to: "masked")
    #expect(try read("masked") == .masked)
    #expect(try read("masked too") == .masked)
  }

  @Test func `a file over the limit is refused`() throws {
    try temporary.write("file", String(repeating: "x", count: 101))
    #expect(throws: SystemError(call: "read \(temporary["file"])", code: EFBIG)) { try read("file") }
    #expect(try read("file", limit: 101) == .bytes([UInt8](repeating: UInt8(ascii: "x"), count: 101)))
  }

  @Test(arguments: ["fifo", "folder"]) func `a FIFO or a folder is refused and not waited for`(what: String) throws {
    try temporary.makeFIFO("fifo")
    try temporary.makeFolder("folder")
    #expect(throws: SystemError(call: "read \(temporary[what])", code: EINVAL)) { try read(what) }
  }

  @Test func `a link to another device than dev null is no mask`() throws {
    try temporary.link("device", to: "/dev/zero")
    #expect(throws: SystemError(call: "read \(temporary["device"])", code: EINVAL)) { try read("device") }
  }

  @Test func `a loop of links is an error and not missing`() throws {
    try temporary.link("one", to: "other")
    try temporary.link("other", to: "one")
    #expect(throws: SystemError(call: "stat \(temporary["one"])", code: ELOOP)) { try read("one") }
  }

  @Test func `names are sorted by their bytes and do not include the folder itself`() throws {
    for name in ["b", "a", "B", "10", "9", "é", ".hidden", "e\u{301}"] { try temporary.write(name, "") }
    let names = try ConfigurationAccess.names(in: temporary.path)
    #expect(
      names?.map { Array($0.utf8) } == [".hidden", "10", "9", "B", "a", "b", "e\u{301}", "é"].map { Array($0.utf8) })
  }

  @Test func `a missing folder has no list of names, and an empty folder has an empty one`() throws {
    try temporary.makeFolder("empty")
    try temporary.write("file", "")
    #expect(try ConfigurationAccess.names(in: temporary["empty"]) == [])
    #expect(try ConfigurationAccess.names(in: temporary["nothing"]) == nil)
    #expect(try ConfigurationAccess.names(in: temporary["file"]) == nil)
  }
}
