import Glibc
import IdentityCore
import LinuxSystem

/// The keys that protect secrets, their files, and the guarded memory to use them in. The key of the proofs is a
/// ``StoreKey``.
struct StoreKeys: Sendable {
  /// The master keys.
  var ring: KeyRing
  /// The data key that encrypts items; nil if no master key opens it.
  var dataKey: DataKey?
  /// The files of the keys, as they were when they were last read or written.
  private(set) var files = KeyFiles()
  /// The transit key, which encrypts secrets on their way through the daemon.
  let transit: CipherKey
  /// The guarded memory of the writer.
  let memory: SecretMemory

  init(_ handedOver: KeyRing, in folder: borrowing Folder) throws(SystemError) {
    guard let transit = CipherKey(), let memory = SecretMemory(transit: transit) else {
      throw SystemError(call: "allocate guarded memory", code: ENOMEM)
    }
    self.transit = transit
    self.memory = memory
    ring = KeyRing(handedOver, in: folder)
  }

  /// Returns the guarded memory and the key to use the items of a store; nil if the key is missing.
  func cipher(of store: UUID) -> ItemCipher? {
    (dataKey?.key).map { ItemCipher(memory: memory, key: $0, store: store) }
  }

  /// Notes the files of the keys, which were just read or written.
  mutating func noteFiles(in folder: borrowing Folder) throws(SystemError) { files = try KeyFiles(in: folder) }

  /// Draws a data key for a new store and wraps it in the preferred master key.
  ///
  /// The file of a new master key lasts only from the next sync of the folder on.
  mutating func freshDataKey(of store: UUID, at now: Timestamp, in folder: borrowing Folder) throws(SystemError)
    -> WrappedKey
  {
    let master = try ring.preferred(in: folder)
    guard let key = try DataKey.random() else { throw SystemError(call: "allocate guarded memory", code: ENOMEM) }
    return key.wrapped(in: master, of: store, created: now)
  }
}

/// The key files in the state directory. With other files in their places the next start could open nothing.
struct KeyFiles: Equatable, Sendable {
  let store: FileStatus?
  /// The files of the master key and of its successor.
  let master: [FileStatus?]

  /// Creates the description of files that are not known.
  init() { (store, master) = (nil, []) }

  init(in folder: borrowing Folder) throws(SystemError) {
    store = try folder.status(of: StoreKey.fileName)
    master = try Self.master(in: folder)
  }

  private static func master(in folder: borrowing Folder) throws(SystemError) -> [FileStatus?] {
    [try folder.status(of: MasterKey.fileName), try folder.status(of: MasterKey.nextFileName)]
  }

  /// Returns whether the folder still has these files.
  ///
  /// - Parameter withMaster: whether the files of the master keys count.
  func areInPlace(in folder: borrowing Folder, withMaster: Bool) throws(SystemError) -> Bool {
    guard try folder.status(of: StoreKey.fileName) == store else { return false }
    guard withMaster else { return true }
    return try Self.master(in: folder) == master
  }
}
