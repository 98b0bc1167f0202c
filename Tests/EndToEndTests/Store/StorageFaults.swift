import Foundation
import LinuxSystem
import TestSupport

/// A fault of storage calls, and the calls that it affects.
struct StorageFault: Sendable, CustomStringConvertible {
  /// The kinds of calls: those on the state directory and its contents, and SQLite's memory allocations.
  enum Call: Int64, CaseIterable {
    case opening, openingToWrite, creating, reading, writing, syncing, cutting, removing, renaming, asking, locking,
      owning, listing, allocating
  }

  /// The effect of a failing call: none, half with a short count, half with an error, or all with an error.
  enum Way: Int64 { case refused, short, torn, doneYetRefused }

  let description: String
  /// The row in the table of faults. Nil for a fault that is row 3 if it happens once, and row 4 if it lasts.
  let row: Int?
  let calls: Set<Call>
  var error: Int32 = 0
  var way = Way.refused
  /// Whether a correct program continues as if the call had not failed.
  var isInvisible = false
  /// Whether a trial may also make all later calls fail.
  var lasts = true

  /// The faults of file systems, and SQLite's lack of memory.
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

/// Makes storage calls and SQLite's allocations fail, with a library that is preloaded into the daemon.
///
/// Each fault resets the count of calls, so that a repeated request meets the fault at the same call.
@safe
final class StorageFaults {
  private let library: URL
  private let file: URL
  /// The words of the mapped file, in the order of `struct control` in storage-faults.c.
  private enum Word: Int, CaseIterable { case counted, calls, first, last, error, way, failed, unsynced, ahead }
  private let words: UnsafeMutablePointer<Int64>
  private static let count = Word.allCases.count + StorageFault.Call.allCases.count
  private static let length = count * MemoryLayout<Int64>.stride

  init(in folder: URL) throws {
    library = folder.appending(path: "storage-faults.so")
    try PreloadedLibrary.compile("storage-faults", to: library, ["-lsqlite3"])
    file = folder.appending(path: "faults")
    try Data(repeating: 0, count: Self.length).write(to: file)
    let descriptor = unsafe open(file.path, O_RDWR)
    defer { close(descriptor) }
    let place = unsafe mmap(nil, Self.length, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0)
    guard let place = unsafe place, unsafe place != MAP_FAILED else { throw Failure("no mapping: \(errno)") }
    unsafe words = place.bindMemory(to: Int64.self, capacity: Self.count)
  }

  deinit { unsafe munmap(words, Self.length) }

  /// Returns the wrapper to start a daemon through.
  func wrapper(for daemon: DaemonUnderTest) -> [String] {
    [
      "/usr/bin/env", "LD_PRELOAD=\(library.path)", "STORAGE_FAULTS=\(file.path)",
      "STORAGE_FOLDER=\(daemon.state.path)",
    ]
  }

  /// Makes the calls of a fault fail, from call number `first` on, counted from now.
  ///
  /// - Parameter lasting: whether all later calls fail too, and not only one.
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

  /// Ends the fault.
  ///
  /// - Returns: the number of calls that failed.
  @discardableResult
  func end() -> Int {
    self[.counted] = 0
    return struck
  }

  /// The number of calls that have failed since the last fault began.
  var struck: Int { Int(self[.failed]) }

  /// Whether a sync that durability depends on has failed since the last fault began.
  var leftUnsynced: Bool { self[.unsynced] > 0 }

  /// Returns the number of calls of each kind that the daemon makes while the body runs.
  func calls(_ body: () throws -> Void) rethrows -> [StorageFault.Call: Int] {
    let kinds = StorageFault.Call.allCases
    let made = { (kind: StorageFault.Call) in unsafe Int(self.words[Word.allCases.count + Int(kind.rawValue)]) }
    let before = kinds.map(made)
    try body()
    return Dictionary(uniqueKeysWithValues: zip(kinds, before).map { ($0, made($0) - $1) })
  }

  /// Moves the daemon's monotonic clock ahead: the daemon tries to rewrite its store at most once a second.
  func passTime() { self[.ahead] += 2_000_000_000 }

  private subscript(word: Word) -> Int64 {
    get { unsafe words[word.rawValue] }
    set { unsafe words[word.rawValue] = newValue }
  }

}

/// A library that is preloaded into the daemon, compiled from its source beside the tests.
enum PreloadedLibrary {
  /// Compiles a library.
  ///
  /// - Parameter name: the name of the source without its extension.
  static func compile(_ name: String, to library: URL, _ options: [String] = []) throws {
    let source = Document.root.appending(path: "Tests/EndToEndTests/Fixtures/\(name).c")
    let result = try run(["cc", "-shared", "-fPIC", "-O1", "-o", library.path, source.path] + options)
    guard result.status == 0 else { throw Failure("\(source.path): \(result.errors)") }
  }
}
