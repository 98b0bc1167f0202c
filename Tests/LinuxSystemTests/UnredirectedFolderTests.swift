import Foundation
import LinuxSystem
import TestSupport
import Testing

struct UnredirectedFolderTests {
  private let temporary: TemporaryFolder
  init() throws { temporary = try TemporaryFolder() }

  /// Folders, and links to them and elsewhere.
  private func makeLinks() throws {
    for name in ["real", "real/inner"] { try temporary.makeFolder(name) }
    try temporary.write("real/inner/here")
    try temporary.write("file")
    for (name, target) in [
      ("own", "real/inner"), ("absolute", temporary["real"]), ("up", "./real/../own"), ("loop", "loop"),
      ("nothing", "missing"), ("to-file", "file"),
    ] {
      try temporary.link(name, to: target)
    }
  }

  @Test(arguments: ["real/inner", "own", "own/", "absolute/inner", "up", "up/.//", "absolute/../own"])
  func `the process's own links lead to an unredirected folder`(path: String) throws {
    try makeLinks()
    #expect(try Folder(unredirected: temporary[path]).status(of: "here") != nil)
  }

  @Test(
    arguments: [
      ("loop", ELOOP), ("loop/inner", ELOOP), ("nothing", ENOENT), ("missing", ENOENT), ("file", ENOTDIR),
      ("to-file", ENOTDIR), ("file/inner", ENOTDIR),
    ] as [(String, Int32)])
  func `an unredirected folder that is missing or none is refused`(path: String, code: Int32) throws {
    try makeLinks()
    let error = try failure(of: SystemError.self) { _ = try Folder(unredirected: temporary[path]) }
    #expect(error.code == code)
  }

  @Test(
    .enabled(if: isRoot, "links of another user need root"),
    arguments: ["own", "up", "absolute/inner", "real/../absolute", "admins/inner"])
  func `a link of another user on the way to an unredirected folder is refused`(path: String) throws {
    try makeLinks()
    try temporary.link("admins", to: "absolute")
    for name in ["own", "absolute"] { #expect(unsafe lchown(temporary[name], 4_711, 4_711) == 0) }
    let error = try failure(of: SystemError.self) { _ = try Folder(unredirected: temporary[path]) }
    #expect(error.code == ELOOP && error.call.contains("of user 4711"), "\(error)")
    _ = try Folder(unredirected: temporary["real/inner"])
  }
}
