import IdentityCore
package import IdentityStore

extension LogEvent {
  /// Returns the log event of a notice of the store.
  package static func store(_ notice: StoreNotice) -> LogEvent {
    switch notice {
    case .created(let path): say(.notice, "Created a new store: \(path).")
    case .migrated(let from): say(.notice, "Migrated the store from schema version \(from) to the current version.")
    case .unsealed: say(.notice, "Removed the sealed store and began a new one.")
    case .finishedRewrite: say(.notice, "Completed an interrupted rewrite of the store.")
    case .witnessRenewed(let reason): say(.warning, "Wrote a new witness file for the store: \(reason).")
    case .setAside(let path): say(.error, "A file was set aside: \(path).")
    case .healed: say(.notice, "The store was rewritten; changes are possible again.")
    case .restarting: say(.notice, "The state directory can be used again: starting anew.")
    case .unwatched(let reason):
      say(.warning, "Files that others remove are noticed only at the next change of the store: \(reason).")
    case .condition(.writable): say(.notice, "The store is writable again.")
    case .condition(.full): say(.error, "The disk is full: changes are refused until space is free.")
    case .condition(.unwritable(let why)): say(.error, "Changes are refused until the store is rewritten: \(why).")
    case .condition(.unreadable(let why)):
      say(.error, "The store could not be read, so none of its content is served: \(why).")
    case .condition(.damaged(let why)): say(.error, "The store is damaged, so only proven records are served: \(why).")
    }
  }

  private static func say(_ level: LogLevel, _ text: String) -> LogEvent {
    .store(StoreNoticeText(level: level, text: text))
  }
}
