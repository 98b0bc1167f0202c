import IdentityCore
import IdentityStore
import IdentityWire
import LinuxSystem
import Systemd

/// The identity that the machine is given by credentials of the service manager, for its first start.
package struct Provision: Sendable {
  /// The text of a device identifier; nil if there is none.
  package var device: [UInt8]?
  /// A backup that `identityctl backup` wrote; nil if there is none.
  package var items: [UInt8]?
  /// The path of the file with the passphrase of the backup; nil if there is none.
  package var passphraseFile: String?

  package init() {}
}

extension Writer {
  /// Gives the machine its identity, if the store has none. Done before the first request is served.
  ///
  /// Nothing is changed after a failure. The next start tries again, as long as the store has no identity.
  func provision(_ report: inout WriterReport) {
    // Nothing is known of a store that cannot be read, and one that cannot be written says so itself.
    guard store.condition.refusal == nil, !registry.isSealed else { return }
    do {
      // A store with items that are still to be read has an identity.
      guard registry.isWithoutIdentity, !store.lacksItems else { return completeRecord() }
      let given = try surveyor.sources.provision()
      guard given.device != nil || given.items != nil else { return }
      try requireStarted()
      guard try store.beginProvision([given.device, given.items]) else { return }
      ServiceManager.notify(["EXTEND_TIMEOUT_USEC=\(Bound.startExtensionMicroseconds)"])
      let context = context(for: nil)
      let changes = try registry.provision(device: device(given), backup: backup(given), context)
      if let refusal = commit(changes, at: context.now, &report) { throw refusal }
      completeRecord()
      report.notices.append(.provisioned)
    } catch {
      report.notices.append(.provisionFailed((error as? Refusal)?.text ?? "\(error)"))
    }
  }

  /// Completes the record of an identity that is on disk. A failure changes nothing for anybody: each later start completes
  /// the record, too.
  private func completeRecord() { try? store.endProvision() }

  private func device(_ given: Provision) throws(Refusal) -> UUID? {
    guard let text = given.device else { return nil }
    let trimmed = text.filter { $0 > 0x20 }
    guard let device = UUID(parsing: trimmed.span) else {
      throw .unavailable("the credential identityd.device is not a UUID")
    }
    return device
  }

  private func backup(_ given: Provision) throws(Refusal) -> Backup? {
    guard let file = given.items else { return nil }
    guard let passphrase = given.passphraseFile else {
      throw .unavailable("the credential identityd.items-passphrase is missing")
    }
    do {
      return try store.backup(in: file, passphraseFile: passphrase)
    } catch {
      throw .unavailable("the credential identityd.items cannot be restored: \(error.text)")
    }
  }
}
