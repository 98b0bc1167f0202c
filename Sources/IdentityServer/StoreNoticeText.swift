import IdentityCore
package import IdentityStore

extension LogEvent {
  /// Returns the log event of a notice of the store.
  package static func store(_ notice: StoreNotice) -> LogEvent {
    switch notice {
    case .created(let path): say(.notice, "A new store was made: \(path).")
    case .migrated(let from): say(.notice, "The store of schema version \(from) was brought to this program's.")
    case .unsealed: say(.notice, "The store was sealed: this is a first start, and nothing of before is left.")
    case .finishedRewrite: say(.notice, "A rewrite of the store that was interrupted was brought to its end.")
    case .witnessRenewed(let reason): say(.warning, "The store's witness was made anew: \(reason).")
    case .setAside(let path): say(.error, "A damaged file was set aside: \(path).")
    case .healed: say(.notice, "The store was written anew, and changes are possible again.")
    case .condition(.writable): say(.notice, "The store can be written again.")
    case .condition(.full): say(.error, "The disk is full: changes are refused until there is room.")
    case .condition(.unwritable(let why)): say(.error, "Changes are refused until the store was written anew: \(why).")
    case .condition(.unreadable(let why)):
      say(.error, "The store could not be read, and nothing of it is served: \(why).")
    case .condition(.damaged(let why)): say(.error, "The store is damaged, and only what is proven is served: \(why).")
    }
  }

  private static func say(_ level: LogLevel, _ text: String) -> LogEvent {
    .store(StoreNoticeText(level: level, text: text))
  }
}
