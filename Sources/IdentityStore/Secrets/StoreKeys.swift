import Glibc
import IdentityCore
import LinuxSystem

/// The master keys, the transit key, and the guarded memory to use them in. The key of the proofs is a ``StoreKey``.
struct StoreKeys: Sendable {
  var ring: KeyRing
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
