import Glibc
import IdentityCore
import IdentityStore
import LinuxSystem

/// A state directory in memory, whose files are set up before each run.
final class Scratch {
  private let root: String
  /// The path of the state directory.
  let state: String

  /// Creates the folder with access for its owner alone.
  init() throws {
    // A fuzzer that ends leaves its folder behind, so packaging/tools/fuzz names a folder that it removes.
    let base = unsafe getenv("IDENTITYD_FUZZ_SCRATCH").map { unsafe String(cString: $0) } ?? "/dev/shm"
    var template = Array("\(base)/identity-fuzz-XXXXXX".utf8CString)
    guard unsafe mkdtemp(&template) != nil else { throw Finding("mkdtemp: \(errno)") }
    root = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    state = root + "/state"
    try Folder.create(path: state, mode: 0o700)
  }

  deinit {
    try? restore([:])
    unsafe rmdir(state)
    unsafe rmdir(root)
  }

  /// Replaces all files in the directory.
  func restore(_ files: [String: [UInt8]]) throws {
    let folder = try Folder(path: state)
    for name in try ConfigurationAccess.names(in: state) ?? [] { try folder.remove(name) }
    for (name, bytes) in files { try write(name, bytes, in: folder) }
  }

  private func write(_ name: String, _ bytes: [UInt8], in folder: borrowing Folder) throws {
    let file = try folder.open(name, flags: O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
    var written = 0
    while written < bytes.count { written += try file.write(bytes, from: written) ?? 0 }
  }

  /// Returns every file except the lock, which has no content of the store.
  func files() throws -> [String: [UInt8]] {
    let folder = try Folder(path: state)
    var files: [String: [UInt8]] = [:]
    for name in try ConfigurationAccess.names(in: state) ?? [] where name != "lock" {
      files[name] = try folder.read(name, limit: 1 << 24)
    }
    return files
  }

  /// The time and the machine of every start.
  static let start = Timestamp(milliseconds: 1_700_000_000_000)
  static let machine = MachineMarks(machineID: Array("a machine-id".utf8), hardware: Array("a hardware UUID".utf8))

  /// Opens the store, runs `body`, and releases the store without closing it, as a kill would.
  func withStore<Result>(on machine: MachineMarks = machine, _ body: (inout Store, StoreContent) throws -> Result)
    throws -> Result
  {
    let directory = try StateDirectory.open(path: state)
    var store = try Store.open(
      directory, options: .init(), now: Self.start, identity: UUID(high: 0x4000, low: 1 << 63), machine: machine)
    let content = store.takeContent()
    return try body(&store, content)
  }
}
