import Glibc
package import IdentityCore
import LinuxSystem

// Secrets, and the keys that guard them.
extension Store {
  /// What it takes to use items; nil where their key is missing.
  var sealing: ItemSealing? {
    (dataKey?.sealing).map { ItemSealing(memory: keys.memory, key: $0, store: identity) }
  }

  /// Where the master key comes from that wraps the data key; nil where it is missing.
  package var keySource: KeySource? { dataKey == nil ? nil : ledger.wrappedKey?.source }

  /// Guarded memory for another thread.
  package func makeSecretMemory() throws -> SecretMemory {
    guard let memory = SecretMemory(transit: keys.transit) else {
      throw SystemError(call: "allocate guarded memory", code: ENOMEM)
    }
    return memory
  }

  /// A connection for another thread to read secrets on; nil where there is nothing to read, or SQLite refuses: the
  /// writer can read them too.
  package func makeItemReader() -> ItemReader? {
    guard files != nil, let sealing else { return nil }
    return try? ItemReader(path: path, readOnly: directory.isReadOnly, sealing)
  }

  /// The secret of an item, as it is committed.
  package func secret(of item: Item) throws(Refusal) -> SealedSecret {
    guard let sealing else { throw .unavailable("the key of the items is missing") }
    do {
      guard files != nil else { throw Refusal.unavailable("the store is being written anew") }
      guard let stored = try files?.secret(of: item), stored.edition == item.edition,
        let secret = sealing.memory.taken(stored.sealed, with: item.associated(with: identity), sealing.key)
      else { throw Refusal.damagedSecret(item) }
      return secret
    } catch let refusal as Refusal {
      throw refusal
    } catch {
      throw .broken("the secret cannot be read: \(error)")
    }
  }

  /// The UUID that a secret says.
  package func identifier(in secret: SealedSecret) throws(Refusal) -> UUID {
    guard let identifier = keys.memory.identifier(in: secret) else {
      throw .invalidUUID("(the secret of the item)")
    }
    return identifier
  }
}

extension Refusal {
  /// The secret of an item is not what was stored: swapped, cut, or edited.
  package static func damagedSecret(_ item: Item) -> Refusal {
    .broken(
      "the secret of this item is damaged: group=\(item.key.group) service=\(item.key.service) "
        + "account=\(item.key.account)")
  }
}

// MARK: - Another master key

extension Store {
  /// Wraps the data key in another master key: the service manager's where that one does not wrap it yet, else a new one
  /// of the file. The secrets stay as they are.
  ///
  /// The new key is on disk before anything is wrapped in it, and the old one until everything is.
  /// - Returns: where the new master key comes from.
  package mutating func rotateKey(at now: Timestamp) throws(Refusal) -> KeySource {
    if let refusal = condition.refusal { throw refusal }
    guard let dataKey, let wrapped = ledger.wrappedKey, let (_, current) = keys.ring.unwrap(wrapped, of: identity)
    else { throw .unavailable("the key of the items is missing") }
    do {
      let next = try nextMaster(after: current)
      // The key that was just made is one of them.
      keyFiles = try KeyFiles(in: directory.folder)
      let key = dataKey.wrapped(in: next, of: identity, created: now)
      // Before the commit: one that fails behind its sync may be found on disk when the store is written anew.
      keys.ring.take(next)
      try commit { (edit, authenticator) throws(DatabaseError) in try edit.wrap(key, authenticator) }
      keys.ring.keep(next)
      // First out of the log, which may be lost while the old key still opens what is in the file. Then what the old key
      // wrapped is in no file any more. Where a reader is in the way, a later commit does it.
      _ = try? files?.database.checkpointIfFree()
      // It is done; what cannot be tidied up now is at the next start.
      try? KeyRing.settle(next, in: directory.folder)
      keyFiles = try KeyFiles(in: directory.folder)
      measure()
      return next.source
    } catch let refusal as Refusal {
      throw refusal
    } catch {
      condition = StoreCondition(after: error)
      throw error is UncertainCommit ? .uncertain(condition) : condition.refusal ?? .broken("\(error)")
    }
  }

  private func nextMaster(after current: MasterKey) throws -> MasterKey {
    guard let credential = keys.ring.masters.first, credential.name == MasterKey.credentialName else {
      guard current.source == .file else {
        throw Refusal.unavailable("the service manager does not hand identityd.key over: there is no key to change to")
      }
      // Where the last rotation was cut, its key takes its place first.
      try KeyRing.settle(current, in: directory.folder)
      return try KeyRing.makeFile(MasterKey.nextFileName, in: directory.folder)
    }
    guard credential.id != current.id else {
      throw Refusal.conflict(
        "the credential identityd.key wraps the data key already; identityd-setup-key --rotate makes another one")
    }
    return credential
  }
}
