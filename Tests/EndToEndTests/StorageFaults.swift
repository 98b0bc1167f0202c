import Foundation
import LinuxSystem
import TestSupport

/// What goes wrong with a call, and with which calls it can.
struct StorageFault: Sendable, CustomStringConvertible {
  /// The calls on the state directory and what is in it, and one that is none: SQLite's for memory.
  enum Call: Int64, CaseIterable {
    case opening, openingToWrite, creating, reading, writing, syncing, cutting, removing, renaming, asking, locking,
      owning, listing, allocating
  }

  /// How a call fails: it does nothing, half and says so, half and says that it failed, all and says that it failed.
  enum Way: Int64 { case refused, short, torn, doneYetRefused }

  let description: String
  /// Of the table of faults, where each of several calls may be another row's.
  let row: Int?
  let calls: Set<Call>
  var error: Int32 = 0
  var way = Way.refused
  /// A correct program goes on as if nothing had happened.
  var isInvisible = false
  /// Whether it makes sense that every further call fails as well.
  var lasts = true

  /// What a file system does, and what SQLite meets where there is no memory.
  static let all: [StorageFault] = [
    .init(description: "EIO", row: nil, calls: Set(Call.allCases).subtracting([.allocating, .reading]), error: EIO),
    .init(description: "EIO after half of it", row: nil, calls: [.writing], error: EIO, way: .torn),
    .init(
      description: "EIO after all of it", row: nil, calls: changing.union([.syncing]), error: EIO, way: .doneYetRefused),
    .init(description: "EMFILE", row: nil, calls: [.opening, .openingToWrite, .creating, .listing], error: EMFILE),
    .init(
      description: "EACCES", row: nil, calls: [.opening, .openingToWrite, .creating, .removing, .renaming, .listing],
      error: EACCES),
    .init(description: "ENOSPC", row: 1, calls: growing, error: ENOSPC),
    .init(description: "EDQUOT", row: 2, calls: growing, error: EDQUOT),
    .init(description: "EIO", row: 5, calls: [.reading], error: EIO),
    .init(
      description: "EINTR", row: 6, calls: [.opening, .openingToWrite, .creating, .reading, .writing, .cutting],
      error: EINTR, isInvisible: true, lasts: false),
    .init(description: "a short count", row: 6, calls: [.reading, .writing], way: .short, isInvisible: true),
    .init(description: "no memory", row: 11, calls: [.allocating]),
    .init(description: "EROFS", row: 20, calls: changing, error: EROFS),
  ]

  private static let growing: Set<Call> = [.creating, .writing, .syncing, .renaming]
  private static let changing: Set<Call> = [
    .openingToWrite, .creating, .writing, .cutting, .removing, .renaming, .owning,
  ]
}

/// Has storage calls of a daemon fail, and SQLite's allocations, by a library that is loaded into it.
///
/// The count starts anew with each fault, so that the same request meets it at the same call.
@safe
final class StorageFaults {
  private let library: URL
  private let file: URL
  /// In the order of `struct control` in storage-faults.c.
  private enum Word: Int, CaseIterable { case counted, calls, first, last, error, way, failed, unsynced, ahead }
  private let words: UnsafeMutablePointer<Int64>
  private static let count = Word.allCases.count + StorageFault.Call.allCases.count
  private static let length = count * MemoryLayout<Int64>.stride

  init(in folder: URL) throws {
    library = folder.appending(path: "storage-faults.so")
    try Self.compile(to: library)
    file = folder.appending(path: "faults")
    try Data(repeating: 0, count: Self.length).write(to: file)
    let descriptor = unsafe open(file.path, O_RDWR)
    defer { close(descriptor) }
    let place = unsafe mmap(nil, Self.length, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0)
    guard let place = unsafe place, unsafe place != MAP_FAILED else { throw Failure("no mapping: \(errno)") }
    unsafe words = place.bindMemory(to: Int64.self, capacity: Self.count)
  }

  deinit { unsafe munmap(words, Self.length) }

  /// What a daemon is started through.
  func wrapper(for daemon: DaemonUnderTest) -> [String] {
    [
      "/usr/bin/env", "LD_PRELOAD=\(library.path)", "STORAGE_FAULTS=\(file.path)",
      "STORAGE_FOLDER=\(daemon.state.path)",
    ]
  }

  /// Has the calls fail from the given one on, counted from now.
  func begin(_ fault: StorageFault, at first: Int, lasting: Bool) {
    end()
    self[.calls] = 0
    self[.failed] = 0
    self[.unsynced] = 0
    self[.first] = Int64(first)
    self[.last] = lasting ? .max : Int64(first)
    self[.error] = Int64(fault.error)
    self[.way] = fault.way.rawValue
    self[.counted] = fault.calls.reduce(0) { $0 | 1 << $1.rawValue }
  }

  /// Nothing fails any more.
  ///
  /// - Returns: how many calls failed.
  @discardableResult
  func end() -> Int {
    self[.counted] = 0
    return struck
  }

  /// How many calls failed since the last fault began.
  var struck: Int { Int(self[.failed]) }

  /// Whether something could not be made durable since the last fault began.
  var leftUnsynced: Bool { self[.unsynced] > 0 }

  /// How many calls of each kind something takes.
  func calls(_ body: () throws -> Void) rethrows -> [StorageFault.Call: Int] {
    let kinds = StorageFault.Call.allCases
    let made = { (kind: StorageFault.Call) in unsafe Int(self.words[Word.allCases.count + Int(kind.rawValue)]) }
    let before = kinds.map(made)
    try body()
    return Dictionary(uniqueKeysWithValues: zip(kinds, before).map { ($0, made($0) - $1) })
  }

  /// Lets the daemon's monotonic clock run ahead: it tries to write its store anew at most once a second.
  func passTime() { self[.ahead] += 2_000_000_000 }

  private subscript(word: Word) -> Int64 {
    get { unsafe words[word.rawValue] }
    set { unsafe words[word.rawValue] = newValue }
  }

  /// Compiles the library from what stands beside the tests.
  private static func compile(to library: URL) throws {
    let source = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Fixtures/storage-faults.c")
    let result = try run(["cc", "-shared", "-fPIC", "-O1", "-o", library.path, source.path, "-lsqlite3"])
    guard result.status == 0 else { throw Failure("\(source.path): \(result.errors)") }
  }
}
