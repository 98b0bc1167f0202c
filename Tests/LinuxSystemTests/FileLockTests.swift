import Glibc
import LinuxSystem
import TestSupport
import Testing

struct FileLockTests {
  private let temporary: TemporaryFolder
  init() throws { temporary = try TemporaryFolder() }

  private struct Held: Error {}

  /// Opens the file anew and takes its lock.
  private func lock() throws -> FileLock {
    let folder = try Folder(path: temporary.path)
    let file = try folder.open("lock", flags: O_RDWR | O_CREAT, mode: 0o600)
    guard let lock = try FileLock(of: file, name: "lock") else { throw Held() }
    return lock
  }

  private func isFree() throws -> Bool {
    do { _ = try lock() } catch is Held { return false }
    return true
  }

  private func free(_ lock: consuming FileLock) {}

  @Test func `a second open file is refused the lock, even in the same process`() throws {
    let first = try lock()
    #expect(try isFree() == false)
    free(first)
  }

  @Test func `row 20d: the lock survives another open and close of the file in the process`() throws {
    let first = try lock()
    // This would release a lock of the process (fcntl(2), "advisory record locking").
    drop(try Folder(path: temporary.path).open("lock", flags: O_RDWR))
    #expect(try isFree() == false)
    free(first)
  }

  @Test func `the lock is free at once even if a forked child has the file open`() throws {
    let first = try lock()
    let copy = dup(first.file.number)
    try #require(copy >= 0)
    let child = Descriptor(adopting: copy)
    free(first)
    #expect(try isFree())
    drop(child)
  }

  @Test func `a locked file can be truncated and written`() throws {
    try temporary.write("lock", "what was here before")
    let lock = try lock()
    try lock.file.truncate(name: "lock")
    #expect(try lock.file.write(Array("pid 1\n".utf8)) == 6)
    #expect(try temporary.text("lock") == "pid 1\n")
  }
}
