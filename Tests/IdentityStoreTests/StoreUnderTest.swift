import Glibc
import IdentityCore
import IdentityStore
import IdentityWire
import TestSupport
import Testing

/// The start time and the identity of the stores in these tests.
let start = Timestamp(milliseconds: 1_700_000_000_000)
let identity = UUID(high: 0x0123_4567_89ab_4cde, low: 0x8123_4567_89ab_cdef)
/// The machine on which the stores run.
let machine = MachineMarks(machineID: Array("a machine-id".utf8), hardware: Array("a hardware UUID".utf8))

extension Workspace {
  /// Opens the store of the state directory, runs `body`, and releases the store without closing it, as a kill would.
  func withStore<Result>(
    at now: Timestamp = start, options: Store.Options = .init(), identity: UUID = identity,
    machine: MachineMarks = machine, credentials: KeyCredentials = KeyCredentials(),
    _ body: (inout Store, StoreContent) throws -> Result
  ) throws -> Result {
    let directory = try openState()
    var store = try Store.open(
      directory, options: options, now: now, identity: identity, machine: machine, credentials: credentials)
    let content = store.takeContent()
    return try body(&store, content)
  }

  /// Opens the state directory, which nobody should hold.
  ///
  /// A program that another test starts at this moment inherits the lock, until its exec closes it.
  func openState() throws(StateDirectoryFailure) -> StateDirectory {
    var left = 10_000
    while true {
      do {
        return try StateDirectory.open(path: state)
      } catch .held where left > 0 {
        left -= 1
        sched_yield()
      }
    }
  }

  /// Opens the store, commits batches of changes, and closes it.
  ///
  /// - Parameter withEvents: whether each change is recorded with its event.
  @discardableResult
  func commit(_ batches: [[Change]], withEvents: Bool = false) throws -> Registry {
    try withStore { store, content in
      var registry = content.registry
      for batch in batches {
        let recorded = withEvents ? registry.recorded(batch) : batch.map { RecordedChange($0, event: nil) }
        if !withEvents { for change in batch { registry.apply(change) } }
        try store.mustCommit(recorded)
      }
      try store.mustClose()
      return registry
    }
  }

  /// Returns the result of a start, and releases the store at once.
  func found(
    at now: Timestamp = start, machine: MachineMarks = machine, credentials: KeyCredentials = KeyCredentials()
  ) throws -> StoreContent {
    try withStore(at: now, machine: machine, credentials: credentials) { _, content in content }
  }

  /// Returns the failure to open the store.
  func failure() throws -> StoreFailure {
    do {
      let content = try found()
      throw Failure("the store opened as \(content.condition)")
    } catch let failure as StoreFailure {
      return failure
    }
  }

  /// Returns the failure to open the state directory.
  func refusal() throws -> StateDirectoryFailure {
    do {
      _ = try StateDirectory.open(path: state)
      throw Failure("the state directory opened")
    } catch let failure as StateDirectoryFailure {
      return failure
    }
  }
}

extension Store {
  /// Commits changes. Fails the test if the store does not accept them.
  mutating func mustCommit(_ changes: [RecordedChange]) throws {
    if let condition = commit(changes) { throw Failure("not committed: \(condition)") }
  }

  /// Commits changes without events. Fails the test if the store does not accept them.
  mutating func mustCommit(_ changes: [Change]) throws {
    if let condition = commit(changes) { throw Failure("not committed: \(condition)") }
  }

  /// Commits changes with their events, and returns the condition after a failure.
  mutating func commit(_ changes: [RecordedChange]) -> StoreCondition? {
    commit(changes, events: changes.events) == nil ? nil : condition
  }

  /// Commits changes without events.
  mutating func commit(_ changes: [Change]) -> StoreCondition? {
    commit(changes.map { RecordedChange($0, event: nil) })
  }

  /// Closes the store. Fails the test if the store reports a complaint.
  mutating func mustClose() throws {
    if let complaint = close() { throw Failure("not closed: \(complaint)") }
  }
}

/// The names of a store's files in order, with the lock.
let storeNames = [
  "identityd.db", "identityd.db-wal", "lock", "master.key", "store.key", "witness", "witness.latest",
]

extension Registry {
  /// Whether the registry is empty and unproven as a whole. Ignores the reason why items cannot be used.
  var isNothing: Bool {
    var registry = self
    registry.itemFault = nil
    registry.doubt([], incomplete: [])
    return unproven == .all && registry == Registry()
  }
}

extension StoreCondition {
  /// The reason for the damage. Nil if the store is not damaged.
  var damage: String? {
    if case .damaged(let reason) = self { reason } else { nil }
  }
}

extension StoreContent {
  /// The names of the files that were set aside, without the folder.
  var asideNames: [String] {
    notices.compactMap { notice in
      guard case .setAside(let path) = notice else { return nil }
      return path.split(separator: "/").last.map(String.init)
    }
  }

  /// The reason why the witness was renewed. Nil if it was not renewed.
  var witnessRenewal: String? {
    for case .witnessRenewed(let reason) in notices { return reason }
    return nil
  }
}
