import Foundation
import IdentityCore
import LinuxSystem
import TestSupport
import Testing

@testable import IdentityServer

struct AppFoldersTests {
  private let root: TemporaryFolder
  init() throws { root = try TemporaryFolder() }

  @Test func `a burst of changes causes one reading, after a moment of quiet`() throws {
    try root.makeFolder("apps")
    let watched = try WatchedFolders([root["apps"]])
    var last: UInt64 = 0
    try watched.play(
      (0..<4).map { number in
        .wait(40) {
          try root.write("apps/\(number).app")
          last = Clock.monotonicMicroseconds
        }
      } + [.look {}, .wait(400) {}])
    try #require(watched.looks.count == 1)
    #expect(watched.looks[0].microseconds - last >= UInt64(Bound.quietMilliseconds) * 1_000)
    #expect(watched.looks[0].folders == [root["apps"]])
    #expect(watched.looks[0].names == ["0.app", "1.app", "2.app", "3.app"])
  }

  @Test func `folders that never come to rest are read all the same`() throws {
    try root.makeFolder("apps")
    // By this clock half of the bound passes between two changes.
    var now: UInt64 = 0
    let watched = try WatchedFolders([root["apps"]]) {
      now += UInt64(Bound.restlessMilliseconds) * 500
      return now
    }
    try watched.play((0..<12).map { number in .wait(60) { try root.makeFolder("apps/\(number)") } })
    #expect(watched.looks.count >= 2)
  }

  @Test func `reading the folders does not trigger another reading`() throws {
    try root.makeFolder("apps")
    try root.write("apps/one.app")
    let watched = try WatchedFolders([root["apps"]])
    watched.onLook = { path in
      for name in (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? [] {
        _ = FileManager.default.contents(atPath: "\(path)/\(name)")
      }
    }
    try watched.play([.look { try root.write("apps/two.app") }, .wait(600) {}])
    #expect(watched.looks.count == 1)
  }

  @Test func `every kind of change is noticed, also to a name that is not UTF-8`() throws {
    try root.makeFolder("apps")
    try root.write("other.app")
    let watched = try WatchedFolders([root["apps"]])
    try watched.play([
      .look { try root.write("apps/one.app") },
      .look { try root.move("apps/one.app", to: "apps/two.app") },
      .look { try root.move("other.app", to: "apps/three.app") },
      .look { try root.remove("apps/three.app") },
      .look { try root.makeWithoutText("apps") },
      .wait(300) {},
    ])
    #expect(watched.looks.count == 5)
  }

  @Test func `each of many folders is watched`() throws {
    let names = (0..<3).map { "apps\($0)" }
    for name in names { try root.makeFolder(name) }
    let watched = try WatchedFolders(names.map { root[$0] })
    try watched.play(names.map { name in .look { try root.write("\(name)/one.app") } })
    #expect(watched.looks.count == 3)
  }

  // MARK: Folders that come and go

  @Test func `a folder that is created later, and its parents, are watched from then on`() throws {
    let watched = try WatchedFolders([root["a/b/c"]])
    try watched.play(
      ["a", "a/b", "a/b/c", "a/b/c/d"].map { path in .look { try root.makeFolder(path) } }
        + [.look { try root.write("a/b/c/one.app") }])
    #expect(watched.looks.count == 5)
    #expect(watched.looks.last?.names == ["d", "one.app"])
    #expect(watched.warnings.isEmpty)
  }

  @Test func `a folder created at once with its parents and content is not missed`() throws {
    let watched = try WatchedFolders([root["a/b/c"]])
    try watched.play([
      .look {
        try root.makeFolder("a/b/c")
        try root.write("a/b/c/one.app")
      },
      .wait(300) { #expect(watched.looks.last?.names == ["one.app"]) },
      .look { try root.write("a/b/c/two.app") },
    ])
    #expect(watched.looks.last?.names == ["one.app", "two.app"])
  }

  @Test func `unrelated changes beside a missing folder are ignored`() throws {
    let watched = try WatchedFolders([root["apps"]])
    try watched.play([
      .wait(500) {
        try root.makeFolder("other")
        try root.write("apps.app")
      },
      .look {
        #expect(watched.looks.isEmpty)
        try root.makeFolder("apps")
      },
    ])
  }

  @Test func `a folder that is removed is watched again when it is back`() throws {
    try root.makeFolder("a/apps")
    let watched = try WatchedFolders([root["a/apps"]])
    // First the folder alone is removed, then its parent too, and last the parent is moved away.
    try watched.play([
      .look { try root.remove("a/apps") }, .look { try root.makeFolder("a/apps") },
      .look { try root.write("a/apps/one.app") }, .look { try root.remove("a/apps/one.app") },
      .look { try root.remove("a/apps") }, .look { try root.remove("a") }, .look { try root.makeFolder("a/apps") },
      .look { try root.remove("a/apps") }, .look { try root.move("a", to: "b") },
      .look { try root.makeFolder("a/apps") }, .look { try root.write("a/apps/two.app") },
    ])
    #expect(watched.looks.count == 11)
    #expect(watched.looks.last?.names == ["two.app"])
    #expect(watched.warnings.isEmpty)
  }

  @Test func `a folder that replaces another of its name is watched`() throws {
    try root.makeFolder("apps")
    try root.makeFolder("new")
    let watched = try WatchedFolders([root["apps"]])
    try watched.play([
      .look {
        try root.move("apps", to: "old")
        try root.move("new", to: "apps")
      },
      .look { try root.write("apps/one.app") },
      .wait(400) { try root.write("old/one.app") },
    ])
    #expect(watched.looks.count == 2)
  }

  // MARK: Mounts

  @Test(.enabled(if: isRoot, "mounting needs root"))
  func `a mount on a folder or above it, and its unmount, are noticed`() throws {
    try root.makeFolder("a/apps")
    defer { for path in ["a/apps", "a"] { _ = try? run(["umount", "-l", root[path]]) } }
    let watched = try WatchedFolders([root["a/apps"]])
    func mount(_ path: String) throws { try succeed("mount", "-t", "tmpfs", "tmpfs", root[path]) }
    try watched.play([
      .look { try mount("a/apps") }, .look { try root.write("a/apps/one.app") },
      .look { try succeed("umount", root["a/apps"]) },
      // The mounted file system lacks the folder at first.
      .look { try mount("a") }, .look { try root.makeFolder("a/apps") }, .look { try root.write("a/apps/two.app") },
      .look { try succeed("umount", root["a"]) }, .look { try root.write("a/apps/three.app") },
    ])
    #expect(watched.looks.map(\.names) == [[], ["one.app"], [], [], [], ["two.app"], [], ["three.app"]])
    #expect(watched.warnings.isEmpty)
  }

  @Test(.enabled(if: isRoot, "mounting needs root"))
  func `a mount on a single manifest, and its unmount, are noticed`() throws {
    try root.makeFolder("apps")
    for path in ["apps/one.app", "apps/other", "outside.app"] { try root.write(path) }
    defer { for path in ["apps/one.app", "apps/other"] { _ = try? run(["umount", "-l", root[path]]) } }
    let watched = try WatchedFolders([root["apps"]])
    func mount(on path: String) throws { try succeed("mount", "--bind", root["outside.app"], root[path]) }
    try watched.play([
      .look { try mount(on: "apps/one.app") }, .look { try succeed("umount", root["apps/one.app"]) },
      .wait(400) { try mount(on: "apps/other") },
      // A manifest that was there at the last survey only.
      .look { try root.write("apps/two.app") }, .look { try mount(on: "apps/two.app") },
      .look { try succeed("umount", root["apps/two.app"]) },
    ])
    #expect(watched.looks.count == 5)
  }

  @Test(.enabled(if: isRoot, "mounting needs root"))
  func `a mount of any other folder causes no reading`() throws {
    for name in ["apps", "apps/below", "beside"] { try root.makeFolder(name) }
    let others = ["beside", "apps/below"].map { root[$0] }
    defer { for path in others { _ = try? run(["umount", "-l", path]) } }
    let watched = try WatchedFolders([root["apps"]])
    try watched.play(
      others.map { path in .wait(400) { try succeed("mount", "-t", "tmpfs", "tmpfs", path) } }
        + others.map { path in .wait(400) { try succeed("umount", path) } }
        // The watch on the mounts still works.
        + [
          .look {
            #expect(watched.looks.isEmpty)
            try succeed("mount", "-t", "tmpfs", "tmpfs", root["apps"])
          }
        ])
    try succeed("umount", root["apps"])
  }

  private func succeed(_ command: String...) throws {
    let outcome = try run(command)
    guard outcome.status == 0 else { throw Failure("\(command): \(outcome.errors)") }
  }

  // MARK: Configuration

  @Test func `new folders are read at once and watched in place of the old ones`() throws {
    try root.makeFolder("first")
    try root.makeFolder("second")
    let watched = try WatchedFolders([root["first"]])
    watched.folders?.use([root["second"]])
    #expect(watched.looks.map(\.folders) == [[root["second"]]])
    try watched.play([
      .wait(400) { try root.write("first/one.app") },
      .look {
        #expect(watched.looks.count == 1)
        try root.write("second/one.app")
      },
    ])
    #expect(watched.looks.count == 2)
    #expect(watched.looks.last?.names == ["one.app"])
  }

  @Test func `a folder that cannot be watched is reported once`() throws {
    try root.write("file")
    try root.makeFolder("apps")
    let watched = try WatchedFolders([root["file"], root["apps"]])
    #expect(watched.warnings.count == 1)
    #expect(watched.warnings.first?.contains(root["file"]) == true)
    watched.folders?.use([root["file"], root["apps"]])
    #expect(watched.warnings.count == 1)
    try watched.play([.look { try root.write("apps/one.app") }])
    #expect(watched.looks.count == 2)
  }
}

extension TemporaryFolder {
  /// Creates a folder in another one, with a name that is not UTF-8.
  fileprivate func makeWithoutText(_ name: String) throws {
    let path = Array(self[name].utf8CString.dropLast()) + [CChar(UInt8(ascii: "/")), CChar(bitPattern: 0xff), 0]
    guard unsafe mkdir(path, 0o700) == 0 else { throw Failure("mkdir in \(name): \(errno)") }
  }
}
