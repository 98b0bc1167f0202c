import Foundation
import IdentityCore
import IdentityStore
import LinuxSystem
import TestSupport
import Testing

/// The writable memory of the process, as a core dump of the daemon or its swapped pages would show it.
///
/// The tests run one after another, because each test holds bytes that another one would find.
@Suite(.serialized) struct ProcessMemoryTests {
  /// Bytes in memory that the search skips, so that it does not find its own copy of the pattern.
  @safe
  private final class Page {
    static let size = 1 << 20
    let memory: UnsafeMutableRawPointer

    init() throws {
      guard let memory = unsafe mmap(nil, Self.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
        unsafe memory != MAP_FAILED
      else { throw Failure("no memory") }
      unsafe self.memory = memory
    }

    deinit { unsafe munmap(memory, Self.size) }

    var place: UInt { unsafe UInt(bitPattern: memory) }

    /// Reads a part of a file into this page and nowhere else.
    func load(_ path: String, at offset: Int, count: Int) throws {
      let file = unsafe open(path, O_RDONLY)
      defer { close(file) }
      guard unsafe pread(file, memory, count, off_t(offset)) == count else { throw Failure("cannot read \(path)") }
    }

    func load(_ bytes: [UInt8]) { unsafe memory.copyMemory(from: bytes, byteCount: bytes.count) }
  }

  /// Returns the number of copies of a page's first bytes in the writable memory of this process,
  /// except in these pages.
  private func copies(of pattern: Page, count: Int, _ window: Page, apartFrom own: [Page] = []) throws -> Int {
    let file = unsafe open("/proc/self/mem", O_RDONLY)
    try #require(file >= 0)
    defer { close(file) }
    var found = 0
    // Reads to the end with a FileHandle: Foundation otherwise takes the first partial read of such a
    // file for the whole.
    let maps = try #require(try FileHandle(forReadingFrom: URL(filePath: "/proc/self/maps")).readToEnd())
    for line in String(decoding: maps, as: UTF8.self).split(separator: "\n")
    where line.contains(" rw") {
      let ends = line.prefix { $0 != " " }.split(separator: "-").compactMap { UInt($0, radix: 16) }
      // Skips the shadow memory of a sanitizer. The bytes themselves are elsewhere.
      if ends[1] - ends[0] > 1 << 32 { continue }
      var place = ends[0]
      while place < ends[1] {
        let length = min(ends[1] - place, UInt(Page.size))
        // Another thread may unmap the memory at any time. Then nothing is read.
        let got = unsafe pread(file, window.memory, Int(length), off_t(place))
        if got > 0 { found += matches(of: pattern, count, window, got, at: place, apartFrom: own + [pattern, window]) }
        // The windows overlap, so that a copy across their boundary is found in the second one.
        place += length < UInt(Page.size) ? length : length - UInt(count)
      }
    }
    return found
  }

  /// memmem(3), which Swift does not import.
  private typealias Search = @convention(c) (UnsafeRawPointer, Int, UnsafeRawPointer, Int) -> UnsafeRawPointer?
  private static let search: Search? = {
    guard let symbol = unsafe dlsym(nil, "memmem") else { return nil }
    return unsafe unsafeBitCast(symbol, to: Search.self)
  }()

  private func matches(of pattern: Page, _ count: Int, _ window: Page, _ length: Int, at place: UInt, apartFrom: [Page])
    -> Int
  {
    var found = 0
    var start = 0
    while start + count <= length,
      let hit = unsafe Self.search?(window.memory + start, length - start, pattern.memory, count)
    {
      let offset = unsafe hit - UnsafeRawPointer(window.memory)
      let address = place + UInt(offset)
      if !apartFrom.contains(where: { (($0.place)..<($0.place + UInt(Page.size))).contains(address) }) { found += 1 }
      start = offset + 1
    }
    return found
  }

  @Test func `the search of the memory finds a pattern that is there`() throws {
    let (pattern, window) = (try Page(), try Page())
    var bytes = (0..<32).map { _ in UInt8.random(in: 0...255) }
    pattern.load(bytes)
    #expect(try copies(of: pattern, count: 32, window) > 0)
    for index in bytes.indices { bytes[index] = 0 }
    #expect(bytes.count == 32)
  }

  /// Returns the number of copies in memory of each quarter of a file's first 64 bytes.
  private func copies(of path: String, apartFrom page: Page? = nil) throws -> [Int] {
    let (pattern, window) = (try Page(), try Page())
    let own = [pattern, window, page ?? window]
    return try stride(from: 0, to: 64, by: 16).map { offset in
      try pattern.load(path, at: offset, count: 16)
      return try copies(of: pattern, count: 16, window, apartFrom: own)
    }
  }

  @Test func `row 42c: no master key that was read stays behind in memory`() throws {
    let workspace = try Workspace()
    try workspace.fill([Known(1)])
    try workspace.withStore { store, _ in
      try store.expectOpen([Known(1)])
      #expect(try copies(of: workspace.path("master.key")) == [0, 0, 0, 0])
    }
  }

  @Test func `no master key that was drawn stays behind in memory`() throws {
    let workspace = try Workspace()
    try workspace.withStore { store, _ in
      #expect(try copies(of: workspace.path("master.key")) == [0, 0, 0, 0], "the first one")
      let source = try store.rotateKey(at: later(1))
      #expect(source == .file)
      #expect(try copies(of: workspace.path("master.key")) == [0, 0, 0, 0], "the next one")
    }
  }

  /// Opens a new store with the first bytes of a page as its credential. No other array ever holds these bytes.
  private func source(of workspace: Workspace, _ page: Page) throws -> KeySource? {
    let store = try unsafe Store.open(
      workspace.openState(), options: .init(), now: start, identity: identity, machine: machine,
      credentials: KeyCredentials(current: [UInt8](UnsafeRawBufferPointer(start: page.memory, count: 64))))
    return store.keySource
  }

  @Test func `no credential stays behind in memory once its store is there`() throws {
    let page = try Page()
    let workspace = try Workspace()
    let file = workspace.root + "/credential"
    let made = try workspace.run("dd", "if=/dev/urandom", "of=\(file)", "bs=64", "count=1")
    try #require(made.status == 0)
    try page.load(file, at: 0, count: 64)
    #expect(try source(of: workspace, page) == .credential)
    #expect(try copies(of: file, apartFrom: page) == [0, 0, 0, 0])
  }

  @Test func `row 42c: no open secret stays behind in memory`() throws {
    let (pattern, window) = (try Page(), try Page())
    let workspace = try Workspace()
    try workspace.withStore { store, _ in
      // The secret is generated in guarded memory and never in an array: 4,096 digits of Base64 that depend
      // on the process ID.
      let length = 4_096
      let memory = try store.makeSecretMemory()
      let mark = UInt8(truncatingIfNeeded: Int(getpid()) & 0x3f)
      func digit(_ value: UInt8) -> UInt8 {
        switch value {
        case 0..<26: UInt8(ascii: "A") + value
        case 26..<52: UInt8(ascii: "a") + value - 26
        case 52..<62: UInt8(ascii: "0") + value - 52
        case 62: UInt8(ascii: "+")
        default: UInt8(ascii: "/")
        }
      }
      let sealed = try memory.encrypt { span in
        for index in 0..<length {
          span[index] = digit(UInt8(truncatingIfNeeded: index &* 37 &+ index / 64 &* 11) & 0x3f ^ mark)
        }
        return length
      }
      let item = sampleItem(1, length: sealed.length)
      try store.mustCommit([.itemStored(item, sealed, .added)])
      let read = try store.secret(of: item)
      #expect(read.length == 3_072)
      let healed = store.heal()
      #expect(healed?.items[item.key] == item)
      // Searches for the text and for the bytes that it encodes, of which 24 are enough.
      for index in 0..<32 {
        let value = digit(UInt8(truncatingIfNeeded: index &* 37 &+ index / 64 &* 11) & 0x3f ^ mark)
        unsafe pattern.memory.storeBytes(of: value, toByteOffset: index, as: UInt8.self)
      }
      #expect(try copies(of: pattern, count: 32, window) == 0, "Base64")
      for index in 0..<24 {
        let bits = (0..<4).reduce(UInt32(0)) { bits, part in
          let place = index / 3 * 4 + part
          return bits << 6 | UInt32(UInt8(truncatingIfNeeded: place &* 37 &+ place / 64 &* 11) & 0x3f ^ mark)
        }
        let byte = UInt8(truncatingIfNeeded: bits >> (16 - 8 * UInt32(index % 3)))
        unsafe pattern.memory.storeBytes(of: byte, toByteOffset: index, as: UInt8.self)
      }
      #expect(try copies(of: pattern, count: 24, window) == 0, "bytes")
    }
  }
}
