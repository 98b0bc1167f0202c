package import IdentityCore
package import LinuxSystem

/// Why a store cannot be opened at all. Everything else is a ``StoreCondition``: the daemon serves what it can.
package enum StoreFailure: Error, CustomStringConvertible {
  /// It was written by a later version; nothing was touched.
  case newer(path: String, found: Int64, supported: Int64)
  /// The folder or the disk refused before anything was known.
  case unusable(path: String, reason: String)

  /// The cause, with the path.
  package var description: String {
    switch self {
    case .newer(let path, let found, let supported):
      "\(path) has schema version \(found), this program knows \(supported): it was left as it is"
    case .unusable(let path, let reason): "\(path): \(reason)"
    }
  }
}

/// Something that happened to the store and that an operator should read.
package enum StoreNotice: Equatable, Sendable {
  /// A new store was made.
  case created(path: String)
  /// The store that was here was sealed and has been removed: the one that was made in its place is a new one.
  case unsealed
  /// The store was one of this earlier schema version, and is one of this program's now.
  case migrated(from: Int64)
  /// An interrupted rewrite was brought to its end.
  case finishedRewrite
  /// The record outside the database was missing or damaged, and was made anew from the proven database.
  case witnessRenewed(reason: String)
  /// A damaged file was renamed to this path, for somebody to look at.
  case setAside(path: String)
  /// The store changed its condition, and why.
  case condition(StoreCondition)
  /// The store was written anew after a failure, and changes are possible again.
  case healed
}

/// What was found in the store at start.
package final class StoreContent: Sendable {
  /// What is proven.
  package let registry: Registry
  /// The events that are kept, oldest first, without a gap up to the last one.
  package let events: [Event]
  /// The epoch of their numbers.
  package let epoch: UUID
  /// The machine as it is now; without any mark where the store's key is not known.
  package let fingerprint: MachineFingerprint
  /// The store before this one was sealed on a machine with this very machine-id.
  package let isSealedHere: Bool
  /// What can be done with it.
  package let condition: StoreCondition
  /// What an operator should read, in order.
  package let notices: [StoreNotice]
  /// What the reads of the start saw.
  package let source: DiskReading.Source

  init(
    registry: Registry, events: [Event], epoch: UUID, fingerprint: MachineFingerprint, isSealedHere: Bool,
    condition: StoreCondition, notices: [StoreNotice], source: DiskReading.Source = .disk
  ) {
    self.registry = registry
    self.events = events
    self.epoch = epoch
    self.fingerprint = fingerprint
    self.isSealedHere = isSealedHere
    self.condition = condition
    self.notices = notices
    self.source = source
  }
}
