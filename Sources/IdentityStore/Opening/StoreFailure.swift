package import IdentityCore
package import IdentityWire
package import LinuxSystem

/// The reason why a store cannot be opened at all.
///
/// Every other failure is a ``StoreCondition``, and the daemon serves as much as possible.
package enum StoreFailure: Error, CustomStringConvertible {
  /// A later version wrote the store. Nothing was touched.
  case newer(path: String, found: Int64, supported: Int64)
  /// A version before the first release wrote the store. Nothing was touched.
  case unreleased(path: String)
  /// The folder or the disk failed before anything was known.
  case unusable(path: String, reason: String)

  /// The cause, with the path.
  package var description: String {
    switch self {
    case .newer(let path, let found, let supported):
      "\(path) has schema version \(found), but this program supports only version \(supported); "
        + "the store was left unchanged"
    case .unreleased(let path):
      """
      \(path) was written by a development version from before the first release, and was left unchanged; move its \
      directory away to begin a new store
      """
    case .unusable(let path, let reason): "\(path): \(reason)"
    }
  }
}

/// A notice about the store that an admin should read.
package enum StoreNotice: Equatable, Sendable {
  /// A new store was created.
  case created(path: String)
  /// A sealed store was removed, and a new store was created in its place.
  case unsealed
  /// The store was migrated from this earlier schema version to the version of this program.
  case migrated(from: Int64)
  /// An interrupted rewrite was completed.
  case finishedRewrite
  /// The witness was missing or damaged, and was renewed from the verified database.
  case witnessRenewed(reason: String)
  /// A damaged file was renamed to this path, so that an admin can examine it.
  case setAside(path: String)
  /// The condition of the store changed.
  case condition(StoreCondition)
  /// The store was rewritten after a failure, and changes are possible again.
  case healed
  /// The state directory can be written again, and the daemon starts anew to do so.
  case restarting
  /// The state directory is not watched, for the given reason.
  case unwatched(String)
}

/// The content of the store at start, and the other findings of the start.
package struct StoreContent: Sendable {
  /// The verified content.
  package internal(set) var registry: Registry
  /// The identifier of the store, drawn when it was created; nil if it is not proven.
  package let store: UUID?
  /// The events that are kept, oldest first, without a gap up to the last one.
  package internal(set) var events: [EventLine]
  /// The epoch of the event numbers.
  package let epoch: UUID
  /// The fingerprint of the machine now; without any mark if the store's key is unknown.
  package let fingerprint: MachineFingerprint
  /// Whether the store before this one was sealed on a machine with the same machine-id.
  package let isSealedHere: Bool
  /// The condition of the store.
  package internal(set) var condition: StoreCondition
  /// The notices for an admin, in order.
  package internal(set) var notices: [StoreNotice]
  /// The source that the start read from: the disk or the page cache.
  package let source: DiskReading.Source
  /// Computes identifiers on any thread, with a key derived from the store's key.
  ///
  /// Nil if the store's key is unknown, because nothing may be derived then.
  package let derivation: IdentifierDerivation?
  /// The last resumption of the machine in this boot.
  package let resumption: Resumption
  /// Whether the registry lacks the items, which ``Store/readItems(into:)`` reads.
  package internal(set) var lacksItems: Bool
}
