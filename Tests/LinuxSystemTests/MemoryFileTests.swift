import Foundation
import LinuxSystem
import TestSupport
import Testing

struct MemoryFileTests {
  private let some: [UInt8] = [1, 2, 3, 4, 5]

  /// Returns a second descriptor of the same file.
  private func copy(of file: borrowing MemoryFile) throws -> Descriptor {
    let number = file.descriptor.number
    return Descriptor(adopting: try system("fcntl") { fcntl(number, F_DUPFD_CLOEXEC, 3) })
  }

  private func refusal(_ file: borrowing MemoryFile, _ body: (borrowing MemoryFile) throws -> Void) throws -> Int32 {
    do {
      try body(file)
    } catch let error as SystemError {
      return error.code
    }
    return 0
  }

  @Test func `a new memory file is empty, not sealed and closed on exec`() throws {
    let file = try MemoryFile(named: "test")
    #expect(try file.length() == 0)
    #expect(try file.readWhole(limit: 0) == [])
    #expect(file.isSealed == false)
    #expect(fcntl(file.descriptor.number, F_GETFD) == FD_CLOEXEC)
  }

  @Test func `written bytes are read back from any offset`() throws {
    let file = try MemoryFile(named: "test")
    try file.write(some)
    try file.write([9, 8], at: 4)
    #expect(try file.readWhole(limit: 6) == [1, 2, 3, 4, 9, 8])
    #expect(try file.read(count: 3, at: 2) == [3, 4, 9])
    #expect(try file.read(count: 100, at: 5) == [8], "no more than there is")
    #expect(try file.read(count: .max, at: 6) == [])
    #expect(try file.read(count: 1, at: .max) == [])
    #expect(try file.read(count: -1, at: 0) == [])
    #expect(try file.length() == 6)
  }

  @Test func `large content is written and read completely`() throws {
    let file = try MemoryFile(named: "test")
    let much = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
    try file.write(much, at: 1)
    #expect(try file.readWhole(limit: much.count + 1) == [0] + much)
  }

  @Test func `reads and writes are independent of the file offset`() throws {
    let file = try MemoryFile(named: "test")
    try file.write(some)
    #expect(lseek(file.descriptor.number, 3, SEEK_SET) == 3)
    try file.write([7])
    #expect(try file.readWhole(limit: 10) == [7, 2, 3, 4, 5])
    #expect(lseek(file.descriptor.number, 0, SEEK_CUR) == 3)
  }

  @Test func `a file over the limit is refused`() throws {
    let file = try MemoryFile(named: "test")
    try file.write(some)
    #expect(try refusal(file) { _ = try $0.readWhole(limit: 4) } == EFBIG)
    #expect(try file.readWhole(limit: 5) == some)
  }

  @Test func `a negative offset is refused`() throws {
    let file = try MemoryFile(named: "test")
    try file.write(some)
    #expect(try refusal(file) { try $0.write([1], at: -1) } == EINVAL)
    #expect(try refusal(file) { _ = try $0.read(count: 1, at: -1) } == EINVAL)
    #expect(try refusal(file) { try $0.resize(to: -1) } == EINVAL)
    #expect(try refusal(file) { try $0.punchHole(at: -1, length: 1) } == EINVAL)
    #expect(try file.readWhole(limit: 5) == some)
  }

  @Test func `a file grows with zeros and shrinks`() throws {
    let file = try MemoryFile(named: "test")
    try file.write(some)
    try file.resize(to: 8)
    #expect(try file.readWhole(limit: 8) == some + [0, 0, 0])
    try file.resize(to: 2)
    #expect(try file.readWhole(limit: 8) == [1, 2])
    try file.resize(to: 3)
    #expect(try file.readWhole(limit: 8) == [1, 2, 0])
  }

  @Test func `a hole releases memory and reads as zero`() throws {
    func blocks(_ file: borrowing MemoryFile) throws -> Int {
      var status = stat()
      let number = file.descriptor.number
      try system("fstat") { unsafe fstat(number, &status) }
      return Int(status.st_blocks)
    }
    let file = try MemoryFile(named: "test")
    let page = Int(sysconf(Int32(_SC_PAGESIZE)))
    try file.write([UInt8](repeating: 1, count: 4 * page))
    let before = try blocks(file)
    try file.punchHole(at: page, length: 2 * page)
    #expect(try blocks(file) < before)
    #expect(try file.length() == 4 * page)
    #expect(try file.read(count: page + 1, at: 0) == [UInt8](repeating: 1, count: page) + [0])
    #expect(try file.read(count: 2, at: 3 * page - 1) == [0, 1])
  }

  @Test func `a sealed file cannot be changed through any descriptor`() throws {
    let file = try MemoryFile(named: "test")
    try file.write(some)
    let other = try MemoryFile(adopting: copy(of: file))
    try file.seal()
    #expect(file.isSealed == true)
    #expect(other.isSealed == true)
    try other.seal()
    #expect(try refusal(other) { try $0.write([1]) } == EPERM)
    #expect(try refusal(other) { try $0.resize(to: 1) } == EPERM)
    #expect(try refusal(other) { try $0.resize(to: 10) } == EPERM)
    #expect(try refusal(other) { try $0.punchHole(at: 0, length: 1) } == EPERM)
    #expect(try other.readWhole(limit: 5) == some)
  }

  // F_SEAL_SEAL is 1, F_SEAL_SHRINK 2, F_SEAL_GROW 4, F_SEAL_WRITE 8 (fcntl(2)).
  @Test(arguments: [[1, 2, 4], [1, 2, 8], [1, 4, 8], [2, 4, 8]])
  func `a file that lacks one of the seals is not sealed`(seals: [Int32]) throws {
    let file = try MemoryFile(named: "test")
    let number = file.descriptor.number
    try system("F_ADD_SEALS") { fcntl(number, 1_033, seals.reduce(0, |)) }
    #expect(file.isSealed == false)
  }

  @Test func `a file with F_SEAL_SEAL cannot be sealed`() throws {
    let file = try MemoryFile(named: "test")
    let number = file.descriptor.number
    try system("F_ADD_SEALS") { fcntl(number, 1_033, 1) }
    #expect(try refusal(file) { try $0.seal() } == EPERM)
  }

  // Each case has a descriptor number so high that nothing else in this process gets it.
  @Test(arguments: [("pipe", 940), ("socket", 950), ("folder", 960), ("file", 970)])
  func `only a memory file is adopted, and any other descriptor is closed`(what: String, least: Int32) throws {
    let temporary = try TemporaryFolder()
    try temporary.write("file", "content")
    let pair = what == "pipe" ? try Pair.pipe() : try Pair.sockets()
    let path = what == "folder" ? temporary.path : temporary["file"]
    let file = Descriptor(adopting: try system("open") { unsafe open(path, O_RDONLY | O_CLOEXEC) })
    let source = ["pipe", "socket"].contains(what) ? pair.reader.number : file.number
    let number = try system("fcntl") { fcntl(source, F_DUPFD_CLOEXEC, least) }
    #expect(MemoryFile.isMemoryFile(number) == false)
    #expect(throws: SystemError(call: "adopt memory file", code: EINVAL)) {
      _ = try MemoryFile(adopting: Descriptor(adopting: number)).isSealed
    }
    #expect(fcntl(number, F_GETFD) == -1)
    withExtendedLifetime((pair.reader.number, file.number)) {}
  }

  @Test(.enabled(if: FileManager.default.isWritableFile(atPath: "/dev/shm"), "there is no tmpfs to write to"))
  func `a tmpfs file with a name is no memory file`() throws {
    let path = "/dev/shm/identity-linux-\(UUID().uuidString)"
    let number = try system("open") { unsafe open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600) }
    let file = Descriptor(adopting: number)
    #expect(MemoryFile.isMemoryFile(number) == false)
    try system("unlink") { unsafe unlink(path) }
    #expect(MemoryFile.isMemoryFile(file.number))
  }

  @Test func `a memory file is recognised by its descriptor`() throws {
    let file = try MemoryFile(named: "test")
    #expect(MemoryFile.isMemoryFile(file.descriptor.number))
    #expect(MemoryFile.isMemoryFile(999_999) == false)
  }
}

struct SharedWordsTests {
  private func file(words: Int) throws -> MemoryFile {
    let file = try MemoryFile(named: "test")
    try file.resize(to: words * 8)
    return file
  }

  private func bytes(_ word: UInt64) -> [UInt8] { unsafe withUnsafeBytes(of: word) { unsafe Array($0) } }

  @Test func `a stored word is at once in the file and in other mappings`() throws {
    let file = try file(words: 3)
    let one = try SharedWords(of: file, count: 3)
    let other = try SharedWords(of: file, count: 2)
    for round in UInt64(1)...1_000 {
      one[1] = round &* 0x0123_4567_89AB_CDEF
      #expect(other[1] == round &* 0x0123_4567_89AB_CDEF)
      #expect(try file.read(count: 8, at: 8) == bytes(one[1]))
    }
    try file.write(bytes(42))
    #expect(one[0] == 42)
    #expect(other[0] == 42)
    #expect(one[2] == 0)
  }

  @Test func `words outlive the mapping, and a mapping outlives its descriptor`() throws {
    let file = try file(words: 1)
    let number = file.descriptor.number
    let second = try MemoryFile(
      adopting: Descriptor(adopting: try system("fcntl") { fcntl(number, F_DUPFD_CLOEXEC, 3) }))
    do {
      let words = try SharedWords(of: second, count: 1)
      drop(second)
      words[0] = .max
      #expect(words[0] == .max)
    }
    #expect(try file.readWhole(limit: 8) == [UInt8](repeating: 255, count: 8))
  }

  @Test func `stored words outlive a killed process`() async throws {
    let file = try file(words: 2)
    let number = file.descriptor.number
    await #expect(processExitsWith: .signal(SIGKILL)) { [number = number as Int32] in
      let path = "/proc/\(getppid())/fd/\(number)"
      let file = try MemoryFile(
        adopting: Descriptor(adopting: try system("open \(path)") { unsafe open(path, O_RDWR | O_CLOEXEC) }))
      let words = try SharedWords(of: file, count: 2)
      words[1] = 7
      words[1] = 0xDEAD
      kill(getpid(), SIGKILL)
      words[1] = 8
    }
    #expect(try file.read(count: 8, at: 8) == bytes(0xDEAD))
  }

  @Test func `words outside of the mapping read as zero and cannot be stored`() throws {
    let file = try file(words: 512)
    let words = try SharedWords(of: file, count: 2)
    #expect(words.count == 2)
    for index in [-1, 2, 3, 511, 512, .min, .max] {
      words[index] = 1
      #expect(words[index] == 0)
    }
    #expect(try file.readWhole(limit: 4_096).allSatisfy { $0 == 0 })
  }

  @Test(arguments: [0, -1, 3, .max, .min, Int.max / 8, Int.max / 8 + 1])
  func `a mapping has at least one word and no more than the file`(count: Int) throws {
    let file = try file(words: 2)
    var caught: SystemError?
    do {
      _ = try SharedWords(of: file, count: count).count
    } catch {
      caught = error
    }
    #expect(caught == SystemError(call: "mmap", code: EINVAL))
  }

  @Test func `a sealed file cannot be mapped, nor a mapped one sealed`() throws {
    let file = try file(words: 1)
    do {
      let words = try SharedWords(of: file, count: 1)
      var caught: Int32 = 0
      do { try file.seal() } catch { caught = error.code }
      #expect(caught == EBUSY)
      words[0] = 1
    }
    try file.seal()
    var caught: Int32 = 0
    do { _ = try SharedWords(of: file, count: 1).count } catch { caught = error.code }
    #expect(caught == EPERM)
  }

  @Test func `threads see each other's stores in order`() throws {
    let file = try file(words: 2)
    let words = Both(try SharedWords(of: file, count: 2))
    let thread = try Thread(named: "words") {
      for round in UInt64(1)...100_000 {
        words.words[0] = round
        words.words[1] = round
      }
    }
    var last: UInt64 = 0
    while last < 100_000 {
      last = words.words[1]
      let first = words.words[0]
      if first < last {
        Issue.record("the second of two stores was seen, and the first was not: \(first) < \(last)")
        break
      }
    }
    thread.join()
  }
}

/// Words that two threads share.
private final class Both: Sendable {
  let words: SharedWords
  init(_ words: consuming SharedWords) { self.words = words }
}

private func drop(_ file: consuming MemoryFile) {}
