import Foundation
import Systemd
import TestSupport
import Testing

struct FolderChangeTests {
  private let temporary: TemporaryFolder
  init() throws {
    temporary = try TemporaryFolder()
    try temporary.makeFolder("watched")
  }

  /// Watches a folder, runs the body, and returns the reported changes up to `last`, which must come
  /// within ten seconds.
  private func changes(
    in folder: String = "watched", until last: FolderChange = .entry("last"), _ body: () throws -> Void
  ) throws -> [FolderChange] {
    let loop = try EventLoop()
    var told: [FolderChange] = []
    let source = try loop.watch(folder: temporary[folder]) { change in
      told.append(change)
      if change == last { loop.exit(status: 0) }
    }
    let timeout = try loop.timer(after: 10_000_000) { loop.exit(status: 1) }
    try body()
    let status = try withExtendedLifetime((source, timeout)) { try loop.run() }
    guard status == 0 else { throw Failure("not told of \(last) but of \(told)") }
    return told
  }

  private func finish() throws { try temporary.makeFolder("watched/last") }

  /// Writes a file directly, because Foundation would create a second file.
  private func put(_ text: String, into name: String, flags: Int32 = O_CREAT) throws {
    let number = unsafe open(temporary[name], O_WRONLY | O_CLOEXEC | flags, 0o600)
    guard number >= 0, unsafe write(number, text, text.utf8.count) == text.utf8.count, close(number) == 0 else {
      throw Failure("\(name): \(errno)")
    }
  }

  @Test func `a file is reported when it is made and when it was written`() throws {
    let told = try changes {
      try put("text", into: "watched/file")
      // The other file comes in between, because the kernel merges identical events that follow each other.
      try put("text", into: "watched/other")
      try put("more", into: "watched/file", flags: 0)
      try finish()
    }
    let both: [FolderChange] = [.entry("file"), .entry("file"), .entry("other"), .entry("other")]
    #expect(told == both + [.entry("file"), .entry("last")])
  }

  @Test func `a file that is moved in is reported once`() throws {
    try put("text", into: "draft")
    let told = try changes {
      try temporary.move("draft", to: "watched/file")
      try finish()
    }
    #expect(told == [.entry("file"), .entry("last")])
  }

  @Test func `both names of a renamed file are reported`() throws {
    try put("text", into: "watched/old")
    let told = try changes {
      try temporary.move("watched/old", to: "watched/new")
      try finish()
    }
    #expect(told == [.entry("old"), .entry("new"), .entry("last")])
  }

  @Test func `a file that is moved away or removed is reported`() throws {
    try put("text", into: "watched/one")
    try put("text", into: "watched/other")
    let told = try changes {
      try temporary.move("watched/one", to: "one")
      try temporary.remove("watched/other")
      try finish()
    }
    #expect(told == [.entry("one"), .entry("other"), .entry("last")])
  }

  @Test func `a link that is made or removed is reported, whatever its target`() throws {
    let told = try changes {
      try temporary.link("watched/mask", to: "/dev/null")
      try temporary.link("watched/dangling", to: "nowhere")
      try temporary.remove("watched/mask")
      try finish()
    }
    #expect(told == [.entry("mask"), .entry("dangling"), .entry("mask"), .entry("last")])
  }

  @Test func `reading is no change`() throws {
    try put("text", into: "watched/file")
    let told = try changes {
      #expect(try String(contentsOfFile: temporary["watched/file"], encoding: .utf8) == "text")
      #expect(try FileManager.default.contentsOfDirectory(atPath: temporary["watched"]) == ["file"])
      var status = stat()
      #expect(unsafe stat(temporary["watched/file"], &status) == 0)
      try finish()
    }
    #expect(told == [.entry("last")])
  }

  @Test func `changes in subfolders and beside the folder are not reported`() throws {
    try temporary.makeFolder("watched/folder")
    let told = try changes {
      try put("text", into: "watched/folder/file")
      try put("text", into: "file")
      try finish()
    }
    #expect(told == [.entry("last")])
  }

  @Test func `a name that is not UTF-8 is reported as a change without a name`() throws {
    let told = try changes {
      let name = temporary["watched"].utf8.map { CChar(bitPattern: $0) } + [0x2F, CChar(bitPattern: 0xFF), 0]
      guard unsafe mkdir(name, 0o700) == 0 else { throw Failure("mkdir: \(errno)") }
      try finish()
    }
    #expect(told == [.entry(nil), .entry("last")])
  }

  @Test func `the longest name is reported completely`() throws {
    let name = String(repeating: "n", count: 255)
    let told = try changes {
      try temporary.makeFolder("watched/\(name)")
      try finish()
    }
    #expect(told == [.entry(name), .entry("last")])
  }

  @Test func `removing the folder is reported`() throws {
    try put("text", into: "watched/file")
    let told = try changes(until: .folderIsGone) {
      try temporary.remove("watched/file")
      try temporary.remove("watched")
    }
    #expect(told.first == .entry("file"))
    #expect(told.last == .folderIsGone)
  }

  @Test func `moving the folder away is reported, and so are its removal and the end of the watch`() throws {
    var gone = 0
    let loop = try EventLoop()
    let source = try loop.watch(folder: temporary["watched"]) { change in
      #expect(change == .folderIsGone)
      gone += 1
      if gone == 1 {
        #expect(throws: Never.self) { try temporary.remove("elsewhere") }
      } else if gone == 3 {
        loop.exit(status: 0)
      }
    }
    let timeout = try loop.timer(after: 10_000_000) { loop.exit(status: 1) }
    try temporary.move("watched", to: "elsewhere")
    #expect(try withExtendedLifetime((source, timeout)) { try loop.run() } == 0)
    #expect(gone == 3)
  }

  @Test func `more changes than the kernel queues are reported as an overflow`() throws {
    let limit = try String(contentsOfFile: "/proc/sys/fs/inotify/max_queued_events", encoding: .utf8)
    let most = try #require(Int(limit.trimmingCharacters(in: .whitespacesAndNewlines)))
    try #require(most <= 1 << 20)
    try put("text", into: "watched/a")
    let told = try changes(until: .overflow) {
      // Two names alternate, because the kernel merges identical events that follow each other.
      for round in 0...(most / 2) {
        try temporary.move(round % 2 == 0 ? "watched/a" : "watched/b", to: round % 2 == 0 ? "watched/b" : "watched/a")
      }
    }
    #expect(told.count == most + 1)
  }

  @Test func `a folder behind a link is watched`() throws {
    try temporary.link("link", to: "watched")
    let told = try changes(in: "link") { try finish() }
    #expect(told == [.entry("last")])
  }

  @Test(arguments: [("nothing", ENOENT), ("file", ENOTDIR), ("dangling", ENOENT)])
  func `a path that is no folder cannot be watched`(name: String, code: Int32) throws {
    try put("", into: "file")
    try temporary.link("dangling", to: "nothing")
    let loop = try EventLoop()
    do {
      _ = try loop.watch(folder: temporary[name]) { _ in }
      Issue.record("watched")
    } catch {
      #expect(error.code == code)
      #expect(error.description.hasPrefix("sd_event_add_inotify \(temporary[name]): "))
    }
  }

  @Test func `two watchers of one folder both get changes, and a released one gets none`() throws {
    let loop = try EventLoop()
    var counts = [0, 0, 0]
    let first = try loop.watch(folder: temporary["watched"]) { _ in counts[0] += 1 }
    var gone: EventSource? = try loop.watch(folder: temporary["watched"]) { _ in counts[1] += 1 }
    let last = try loop.watch(folder: temporary["watched"]) { _ in
      counts[2] += 1
      loop.exit(status: 0)
    }
    let timeout = try loop.timer(after: 10_000_000) { loop.exit(status: 1) }
    #expect(gone != nil)
    gone = nil
    try finish()
    #expect(try withExtendedLifetime((first, last, timeout)) { try loop.run() } == 0)
    #expect(counts[1] == 0)
    #expect(counts[2] == 1)
  }
}
