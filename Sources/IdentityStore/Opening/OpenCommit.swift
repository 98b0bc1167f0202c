import Glibc
import IdentityCore
import IdentityWire
import LinuxSystem

// A commit that was never acknowledged may be in the log. A start that can write makes it last, and so it takes effect.
// A start that cannot write leaves it out: on a file system that failed, the commit may exist in memory only, and be gone
// once the file system is mounted again (Decisions/0068).
extension Store {
  /// Decides on a last commit that was never acknowledged: makes it last, or else leaves it out.
  mutating func settleOpenCommit() throws(SystemError) {
    guard let length = openCommit, files != nil, condition.refusal != nil else { return }
    openCommit = nil
    guard let content = found else { return }
    if !directory.isReadOnly, let registry = heal() {
      found = content.replaced(registry: registry, events: content.events, .writable, and: [.healed])
      return
    }
    do {
      let reading = try Patience.repeating { try leaveOutLastCommit(from: length, after: ledger.revision - 1) }
      needsStart = true
      var registry = reading.registry
      if let refusal = condition.refusal { registry.explain(refusal) }
      found = content.replaced(registry: registry, events: reading.events, condition, and: [])
    } catch {
      files = nil
      condition = .unreadable(
        "the last change was never acknowledged and cannot be left out (\(error)); check the disk, then restart identityd"
      )
      var registry = Registry()
      registry.doubt(.all, incomplete: [])
      if let refusal = condition.refusal { registry.explain(refusal) }
      found = content.replaced(registry: registry, events: [], condition, and: [.condition(condition)])
    }
  }

  /// Replaces the connection by one that reads the store without its last commit.
  ///
  /// - Parameters:
  ///   - length: the length of the WAL before that commit; nil if there is none.
  ///   - revision: the revision before that commit.
  @discardableResult
  mutating func leaveOutLastCommit(from length: Int64?, after revision: Int64) throws -> Reading {
    files = nil
    let database = try Self.connect(path, options, readOnly: true, logLength: length)
    let reading = try Reading(database, authenticator, keys)
    guard length != nil, reading.damage.isEmpty, reading.ledger.revision == revision else {
      throw SystemError(call: "leave out a change that was not acknowledged", code: EIO)
    }
    files = try OpenFiles(database, in: directory)
    ledger = reading.ledger
    dataKey = reading.unwrapped?.key
    return reading
  }
}

extension StoreContent {
  fileprivate func replaced(
    registry: Registry, events: [EventLine], _ condition: StoreCondition, and notices: [StoreNotice]
  ) -> StoreContent {
    StoreContent(
      registry: registry, store: store ?? .zero, events: events, epoch: epoch, fingerprint: fingerprint,
      isSealedHere: isSealedHere,
      condition: condition, notices: self.notices + notices, source: source)
  }
}
