import Glibc
package import IdentityCore
import LinuxSystem

// Secrets, and the keys that protect them.
extension Store {
  /// The ID of the store.
  var identity: UUID { ledger.row.identity }

  /// The guarded memory and the key to use items; nil if the key is missing.
  var cipher: ItemCipher? { keys.cipher(of: identity) }

  /// The source of the master key that wraps the data key; nil if that master key is missing.
  package var keySource: KeySource? { keys.dataKey == nil ? nil : ledger.wrappedKey?.source }

  /// Allocates guarded memory for another thread.
  ///
  /// - Throws: ENOMEM if the memory cannot be allocated.
  package func makeSecretMemory() throws -> SecretMemory {
    guard let memory = SecretMemory(transit: keys.transit) else {
      throw SystemError(call: "allocate guarded memory", code: ENOMEM)
    }
    return memory
  }

  /// Opens a connection on which another thread reads secrets.
  ///
  /// - Returns: nil if there is nothing to read, or if SQLite refuses. The writer can read secrets too.
  package func makeItemReader() -> ItemReader? {
    guard files != nil, let cipher else { return nil }
    return try? ItemReader(path: path, readOnly: directory.isReadOnly, cipher)
  }

  /// Returns the committed secret of an item.
  ///
  /// - Throws: `unavailable` if the master key of the items is missing, or during a rewrite of the store, and `broken` if the
  ///   secret is damaged or cannot be read.
  package func secret(of item: Item) throws(Refusal) -> SealedSecret {
    guard let cipher else { throw .unavailable("the master key of the items is missing") }
    do {
      guard files != nil else { throw Refusal.unavailable("the store is being rewritten; try again later") }
      guard let stored = try files?.secret(of: item), stored.edition == item.edition,
        let secret = cipher.memory.reencrypted(
          forTransit: stored.ciphertext, with: item.associated(with: identity), cipher.key)
      else { throw Refusal.damagedSecret(item) }
      return secret
    } catch let refusal as Refusal {
      throw refusal
    } catch {
      throw .broken("the secret cannot be read: \(error)")
    }
  }

  /// Returns the UUID that is the text of a secret.
  ///
  /// - Throws: `invalidUUID` if the text is not a UUID.
  package func identifier(in secret: SealedSecret) throws(Refusal) -> UUID {
    guard let identifier = keys.memory.identifier(in: secret) else {
      throw .invalidUUID("(the secret of the item)")
    }
    return identifier
  }
}

extension Refusal {
  /// Returns the refusal for a secret that is not as it was stored: swapped, cut, or edited.
  package static func damagedSecret(_ item: Item) -> Refusal {
    .broken(
      "the secret of this item is damaged: group=\(item.key.group) service=\(item.key.service) "
        + "account=\(item.key.account)")
  }
}

// MARK: - Rotation of the master key

extension Store {
  /// Wraps the data key in another master key: in the credential if there is one, else in a new key for the file.
  ///
  /// The secrets stay as they are. The new key is on disk before it wraps anything. The old key stays on disk until the
  /// new one wraps the data key.
  ///
  /// - Returns: the source of the new master key.
  /// - Throws: `conflict` if the credential wraps the data key already, `unavailable` if the master key of the items is
  ///   missing or there is no key to change to, `unknown` if the outcome of the commit is unknown, or the refusal of
  ///   the ``condition``.
  package mutating func rotateKey(at now: Timestamp) throws(Refusal) -> KeySource {
    if let refusal = condition.refusal { throw refusal }
    guard let dataKey = keys.dataKey, let wrapped = ledger.wrappedKey,
      let (_, current) = keys.ring.unwrap(wrapped, of: identity)
    else { throw .unavailable("the master key of the items is missing") }
    do {
      let next = try nextMaster(after: current)
      // Includes the file of a key that was just made.
      try keys.noteFiles(in: directory.folder)
      let key = dataKey.wrapped(in: next, of: identity, created: now)
      // Before the commit: a commit that fails after its sync may be found on disk when the store is rewritten.
      keys.ring.insert(next)
      try commit { (edit, authenticator) throws(DatabaseError) in try edit.wrap(key, authenticator) }
      keys.ring.keep(next)
      // The checkpoint comes before the removal of the old key: if the WAL were lost, the database file would need the
      // old key. After the checkpoint no file contains the data key as wrapped in the old key. If a reader is in the
      // way, a later commit checkpoints.
      _ = try? files?.database.checkpointIfFree()
      // The rotation is done. The next start repeats a cleanup that fails.
      try? KeyRing.completeRotation(to: next, in: directory.folder)
      try keys.noteFiles(in: directory.folder)
      measure()
      return next.source
    } catch let refusal as Refusal {
      throw refusal
    } catch {
      throw fail(after: error)
    }
  }

  private func nextMaster(after current: MasterKey) throws -> MasterKey {
    guard let credential = keys.ring.masters.first, credential.name == MasterKey.credentialName else {
      guard current.source == .file else {
        throw Refusal.unavailable(
          "the service manager provides no credential identityd.key, so there is no new key; see identityd-setup-key(8)"
        )
      }
      // Completes an interrupted rotation first.
      try KeyRing.completeRotation(to: current, in: directory.folder)
      return try KeyRing.makeFile(MasterKey.nextFileName, in: directory.folder)
    }
    guard credential.id != current.id else {
      throw Refusal.conflict(
        "the credential identityd.key already wraps the data key; run 'identityd-setup-key --rotate' to replace it")
    }
    return credential
  }
}
