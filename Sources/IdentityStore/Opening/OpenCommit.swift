import Glibc
import IdentityCore
import LinuxSystem

// A commit that was never acknowledged may be in the log. A start that can write makes it last, and so it takes effect.
// A start that cannot write leaves it out: on a file system that failed, the commit may exist in memory only, and be gone
// once the file system is mounted again (Decisions/0068).
extension Store {
  /// Decides on a last commit that was never acknowledged: makes it last, or else leaves it out.
  ///
  /// - Parameter length: the length of the WAL before that commit; nil if there is none.
  mutating func settleOpenCommit(after length: Int64?) throws(SystemError) {
    guard let length, files != nil, condition.refusal != nil else { return }
    if !directory.isReadOnly, let registry = heal() {
      (found.registry, found.condition, found.lacksItems) = (registry, .writable, false)
      return found.notices.append(.healed)
    }
    do {
      let reading = try Patience.repeating { try leaveOutLastCommit(from: length, after: ledger.row.revision - 1) }
      undone = .all
      (found.registry, found.events, found.lacksItems) = (reading.registry, reading.events, false)
    } catch {
      files = nil
      condition = .unreadable(
        "the last change was never acknowledged and cannot be left out (\(error)); check the disk, then restart identityd"
      )
      (found.registry, found.events) = (Registry(), [])
      found.lacksItems = false
      found.registry.doubt(.all, incomplete: [])
      found.notices.append(.condition(condition))
    }
    found.condition = condition
    if let refusal = condition.refusal { found.registry.explain(refusal) }
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
    guard length != nil, reading.damage.isEmpty, reading.ledger.row.revision == revision else {
      throw SystemError(call: "leave out a change that was not acknowledged", code: EIO)
    }
    files = try OpenFiles(database, in: directory)
    ledger = reading.ledger
    keys.dataKey = reading.unwrapped?.key
    return reading
  }
}
