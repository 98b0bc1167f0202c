import Glibc
import IdentityCore
import IdentityStore
import TestSupport
import Testing

/// The time and the identity that the stores of these tests begin with.
let start = Timestamp(milliseconds: 1_700_000_000_000)
let identity = UUID(high: 0x0123_4567_89ab_4cde, low: 0x8123_4567_89ab_cdef)
/// The machine that they run on.
let machine = MachineMarks(machineID: Array("a machine-id".utf8), hardware: Array("a hardware UUID".utf8))

extension Workspace {
  /// Opens the store of the state directory, lends it out, and lets go of it without closing it, as a kill would.
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

  /// Opens the state directory that nobody should hold.
  ///
  /// A program that another test starts at this moment inherits the lock, and lets go of it a moment later at its exec.
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
  /// - Parameter withEvents: whether each change is told in its event.
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

  /// What a start finds; the store is let go of at once.
  func found(
    at now: Timestamp = start, machine: MachineMarks = machine, credentials: KeyCredentials = KeyCredentials()
  ) throws -> StoreContent {
    try withStore(at: now, machine: machine, credentials: credentials) { _, content in content }
  }

  /// Why a store cannot be opened.
  func failure() throws -> StoreFailure {
    do {
      let content = try found()
      throw Failure("the store opened as \(content.condition)")
    } catch let failure as StoreFailure {
      return failure
    }
  }

  /// Why a state directory cannot be used.
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
  /// Commits, and fails the test where the store does not take it.
  mutating func mustCommit(_ changes: [RecordedChange]) throws {
    if let condition = commit(changes) { throw Failure("not committed: \(condition)") }
  }

  /// Commits changes that nobody is told of, and fails the test where the store does not take it.
  mutating func mustCommit(_ changes: [Change]) throws {
    if let condition = commit(changes) { throw Failure("not committed: \(condition)") }
  }

  /// Commits changes that nobody is told of.
  mutating func commit(_ changes: [Change]) -> StoreCondition? {
    commit(changes.map { RecordedChange($0, event: nil) })
  }

  /// Closes, and fails the test where that does not go without a complaint.
  mutating func mustClose() throws {
    if let complaint = close() { throw Failure("not closed: \(complaint)") }
  }
}

/// The files of a store in order, the lock among them.
let storeNames = [
  "identityd.db", "identityd.db-wal", "lock", "master.key", "store.key", "witness", "witness.latest",
]

extension Registry {
  /// Whether nothing is in it, and it says why no item can be used.
  var isNothing: Bool {
    var registry = self
    registry.itemFault = nil
    registry.doubt([], incomplete: [])
    return unproven == .all && registry == Registry()
  }
}

extension StoreCondition {
  /// Why it is damaged; nil when it is not.
  var damage: String? {
    if case .damaged(let reason) = self { reason } else { nil }
  }
}

extension StoreContent {
  /// Where a damaged file was set aside, without the folder.
  var asideNames: [String] {
    notices.compactMap { notice in
      guard case .setAside(let path) = notice else { return nil }
      return path.split(separator: "/").last.map(String.init)
    }
  }

  /// Why the witness was made anew; nil when it was not.
  var witnessRenewal: String? {
    for case .witnessRenewed(let reason) in notices { return reason }
    return nil
  }
}
