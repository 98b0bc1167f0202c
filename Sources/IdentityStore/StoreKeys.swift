import Glibc
import IdentityCore
import LinuxSystem

/// The keys that come from outside of the store, and the memory to use them in: all but the key of the proofs.
struct StoreKeys: Sendable {
  var ring: KeyRing
  /// What seals secrets on their way through the daemon.
  let transit: SealingKey
  /// The guarded memory of the thread that writes.
  let memory: SecretMemory

  init(_ handedOver: KeyRing, in folder: borrowing Folder) throws(SystemError) {
    guard let transit = SealingKey(), let memory = SecretMemory(transit: transit) else {
      throw SystemError(call: "allocate guarded memory", code: ENOMEM)
    }
    self.transit = transit
    self.memory = memory
    ring = KeyRing(handedOver, in: folder)
  }

  /// Draws a data key for a new store, wrapped in the preferred master key.
  mutating func freshDataKey(of store: UUID, at now: Timestamp, in folder: borrowing Folder) throws(SystemError)
    -> WrappedKey
  {
    let master = try ring.preferred(in: folder)
    guard let key = try DataKey.random() else { throw SystemError(call: "allocate guarded memory", code: ENOMEM) }
    return key.wrapped(in: master, of: store, created: now)
  }
}
