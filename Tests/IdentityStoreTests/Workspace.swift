import Foundation
import IdentityCore
import IdentityStore
import TestSupport

/// A folder for one test, removed with this object.
final class Workspace {
  /// The path of the folder. Only its owner has access, as its contents require.
  let root: String
  /// The path of the state directory, which a store creates.
  var state: String { root + "/state" }

  /// Creates the folder, on disk or, for tests that open a store thousands of times, in memory.
  init(inMemory: Bool = false) throws {
    let shared = "/dev/shm"
    let hasMemory = FileManager.default.isWritableFile(atPath: shared)
    let base = inMemory && hasMemory ? shared : FileManager.default.temporaryDirectory.path
    root = "\(base)/identity-store-\(Foundation.UUID().uuidString)"
    try FileManager.default.createDirectory(
      atPath: root, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
  }

  deinit { try? FileManager.default.removeItem(atPath: root) }

  /// The path of a file in the state directory.
  func path(_ name: String) -> String { "\(state)/\(name)" }

  /// Whether the state directory has an entry with this name.
  func exists(_ name: String) -> Bool {
    (try? FileManager.default.attributesOfItem(atPath: path(name))) != nil
  }

  func read(_ name: String) throws -> [UInt8] { try Array(Data(contentsOf: URL(filePath: path(name)))) }

  /// Writes a file with mode 0600, and replaces an existing entry.
  func write(_ name: String, _ bytes: [UInt8]) throws {
    try removeIfThere(name)
    let made = FileManager.default.createFile(
      atPath: path(name), contents: Data(bytes), attributes: [.posixPermissions: 0o600])
    guard made else { throw Failure("cannot write \(path(name))") }
  }

  func remove(_ name: String) throws { try FileManager.default.removeItem(atPath: path(name)) }

  private func removeIfThere(_ name: String) throws { if exists(name) { try remove(name) } }

  func rename(_ name: String, to new: String) throws {
    try removeIfThere(new)
    try FileManager.default.moveItem(atPath: path(name), toPath: path(new))
  }

  /// Returns the permission bits of a file. An empty name means the state directory.
  func mode(_ name: String) throws -> Int {
    let attributes = try FileManager.default.attributesOfItem(atPath: name.isEmpty ? state : path(name))
    guard let mode = attributes[.posixPermissions] as? Int else { throw Failure("no mode of \(name)") }
    return mode
  }

  /// Returns the sorted names in the state directory.
  func names() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: state).sorted() }

  /// Returns all regular files except the lock, which has no content of the store.
  ///
  /// - Parameter others: the names of other files to leave out.
  func files(apartFrom others: [String] = []) throws -> [String: [UInt8]] {
    var files: [String: [UInt8]] = [:]
    for name in try names() where name != "lock" && !others.contains(name) {
      let type = try FileManager.default.attributesOfItem(atPath: path(name))[.type] as? FileAttributeType
      if type == .typeRegular { files[name] = try read(name) }
    }
    return files
  }

  /// Replaces the content of the state directory with the files of ``files(apartFrom:)``.
  func restore(_ files: [String: [UInt8]]) throws {
    if FileManager.default.fileExists(atPath: state) { try FileManager.default.removeItem(atPath: state) }
    try makeState()
    for (name, bytes) in files { try write(name, bytes) }
  }

  /// Creates the state directory without a store.
  func makeState(mode: Int = 0o700) throws {
    try FileManager.default.createDirectory(
      atPath: state, withIntermediateDirectories: false, attributes: [.posixPermissions: mode])
    // The umask applies to the attribute of a new folder.
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: state)
  }

  func makeFolder(_ name: String) throws {
    try FileManager.default.createDirectory(atPath: path(name), withIntermediateDirectories: false)
  }

  /// Fills the disk with a file of this name, except for some spare bytes.
  func fillDisk(_ name: String, sparing spare: Int = 0) throws {
    let room = try FileManager.default.attributesOfFileSystem(forPath: state)[.systemFreeSize] as? Int
    guard let room, room >= spare else { throw Failure("no room for \(name)") }
    try write(name, [UInt8](repeating: 0x2e, count: room - spare))
  }

  /// Writes the database anew with pages of this length, as an earlier version made them.
  func usePages(of length: Int) throws {
    try sql("PRAGMA journal_mode = DELETE; PRAGMA page_size = \(length); VACUUM; PRAGMA journal_mode = WAL")
  }

  /// Runs SQL on the database with sqlite3, as root could.
  ///
  /// - Parameter ofCopy: whether to use a copy of the database and its log, which works while a store has them open.
  @discardableResult
  func sql(_ statements: String, file: String = "identityd.db", ofCopy: Bool = false) throws -> String {
    var place = path(file)
    if ofCopy {
      place = "\(root)/copy-\(Foundation.UUID().uuidString)"
      for end in ["", "-wal"] { try FileManager.default.copyItem(atPath: path(file) + end, toPath: place + end) }
    }
    defer {
      if ofCopy { for end in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: place + end) } }
    }
    let result = try run("sqlite3", "-bail", place, statements)
    guard result.status == 0 else { throw Failure("sqlite3 said \(result.output)") }
    return result.output
  }
}

extension Workspace {
  /// Runs a program to its end, and returns its standard output and standard error together.
  ///
  /// Foundation's `Process` has crashed in a process that opens and closes files on other threads all the time.
  func run(_ command: String...) throws -> (status: Int32, output: String) {
    let output = "\(root)/output-\(Foundation.UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: output) }
    var arguments = unsafe command.map { unsafe strdup($0) } + [nil]
    defer { for index in unsafe arguments.indices { unsafe free(arguments[index]) } }
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    unsafe posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT, 0o600)
    unsafe posix_spawn_file_actions_adddup2(&actions, 1, 2)
    var process: pid_t = 0
    let code = unsafe posix_spawnp(&process, command[0], &actions, nil, &arguments, environ)
    guard code == 0 else { throw Failure("\(command[0]) does not start: \(code)") }
    var status: Int32 = 0
    while unsafe waitpid(process, &status, 0) == -1, errno == EINTR {}
    let text = try Data(contentsOf: URL(filePath: output))
    // The low seven bits are the signal that ended the program, the next eight its exit status.
    return (status & 0x7f == 0 ? status >> 8 & 0xff : 128 + status & 0x7f, String(decoding: text, as: UTF8.self))
  }
}

/// Overwrites one byte of a file that may be open elsewhere.
func overwrite(_ path: String, at place: Int, with byte: UInt8) throws {
  let file = try FileHandle(forWritingTo: URL(filePath: path))
  try file.seek(toOffset: UInt64(place))
  try file.write(contentsOf: Data([byte]))
  try file.close()
}
