import Glibc
import IdentityCore
import IdentityStore
import Testing

/// The time and the identity that the stores of these tests begin with.
let start = Timestamp(milliseconds: 1_700_000_000_000)
let identity = UUID(high: 0x0123_4567_89ab_4cde, low: 0x8123_4567_89ab_cdef)

extension Workspace {
  /// Opens the store of the state directory, lends it out, and lets go of it without closing it, as a kill would.
  func withStore<Result>(
    at now: Timestamp = start, options: Store.Options = .init(), identity: UUID = identity,
    _ body: (inout Store, StoreContent) throws -> Result
  ) throws -> Result {
    let directory = try openState()
    var store = try Store.open(directory, options: options, now: now, identity: identity)
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
  @discardableResult
  func commit(_ batches: [[Change]]) throws -> Registry {
    try withStore { store, content in
      var registry = content.registry
      for batch in batches {
        try store.mustCommit(batch)
        for change in batch { registry.apply(change) }
      }
      try store.mustClose()
      return registry
    }
  }

  /// What a start finds; the store is let go of at once.
  func found(at now: Timestamp = start) throws -> StoreContent { try withStore(at: now) { _, content in content } }

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
  mutating func mustCommit(_ changes: [Change]) throws {
    if let condition = commit(changes) { throw Failure("not committed: \(condition)") }
  }

  /// Closes, and fails the test where that does not go without a complaint.
  mutating func mustClose() throws {
    if let complaint = close() { throw Failure("not closed: \(complaint)") }
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

// MARK: - Samples

extension Registry {
  /// What these changes make of an empty registry.
  init(applying batches: [[Change]]) {
    self.init()
    for change in batches.joined() { apply(change) }
  }
}

/// Gives the device its identifier.
let deviceCreated = Change.deviceCreated(
  Identifier(value: uuid(1), created: Timestamp(milliseconds: 1_700_000_000_123), origin: .machine))

/// Installs an app with this number and gives it its identifier.
func installed(_ number: Int) -> [Change] {
  let app = Text("unit:app-\(number).service")
  let time = Timestamp(milliseconds: 1_700_000_001_000 + Int64(number))
  return [
    .appInstalled(app, App(vendor: Text("vendor-\(number % 3)"), installed: time)),
    .installationCreated(app: app, Identifier(value: uuid(1_000 + UInt64(number)), created: time)),
  ]
}

/// The device in one transaction, then this many apps, each in one of its own.
func sample(apps: Int) -> [[Change]] { [[deviceCreated]] + (0..<apps).map(installed) }

/// A version 4 UUID that tells its number.
func uuid(_ number: UInt64) -> UUID {
  UUID(high: 0x1111_1111_1111_1111, low: number &* 0x9e37_79b9_7f4a_7c15).stamped(version: 4)
}
