import IdentityCore
import IdentityStore
import TestSupport
import Testing

/// Flipped bits and truncated files. However SQLite reads them, wrong data must never be served as right.
@Suite(.tags(.trial)) struct BitFlipTests {
  /// The result of a start with a changed file. With `damagedSecret` the store is exact except for a secret.
  private enum Outcome { case exact, damagedSecret, readOnly, damaged, refused }

  /// The number of attempts and of failures. Each test has its own.
  private final class Count {
    var tried = 0
    private(set) var wrong = 0

    func expect(_ isRight: Bool, _ what: @autoclosure () -> String) {
      if !isRight { wrong += 1 }
      #expect(isRight, "\(what())")
    }
  }

  private let count = Count()

  private func report(_ name: String) throws { try Trial(name).report(tried: count.tried, lost: count.wrong) }

  private static let items = (1...5 as ClosedRange<Int64>).map { Known($0, length: Int($0) * Int($0) * 120) }

  /// Checks that every readable secret is the right one.
  ///
  /// - Returns: whether some secrets are unreadable.
  private func expectSecrets(_ store: borrowing Store, _ registry: Registry, _ what: String) throws -> Bool {
    guard registry.itemFault == nil, let reader = store.makeItemReader() else { return false }
    let memory = try store.makeSecretMemory()
    var isDamaged = false
    for known in Self.items where registry.items[known.item.key] == known.item {
      do {
        var text: [UInt8] = []
        let isOpened = try memory.append(store.secret(of: known.item), as: .base64, to: &text)
        count.expect(isOpened && text == known.base64, "\(what): silent")
      } catch {
        guard case .broken = error else { throw error }
        isDamaged = true
      }
      let answer = ReaderAnswer(reader, known.item, memory)
      count.expect(
        answer == .appended(known) || isDamaged && answer.text == ReaderAnswer.changed.text, "\(what): silent")
    }
    return isDamaged
  }

  /// Runs a start, a change and another start with these files, and checks all served data.
  private func live(_ files: [String: [UInt8]], _ original: Registry, in workspace: Workspace, _ what: String) throws
    -> Outcome
  {
    count.tried += 1
    try workspace.restore(files)
    var expected = original
    do {
      let outcome = try workspace.withStore { store, content -> Outcome in
        count.expect(content.registry.isPart(of: original), "\(what): something was made up")
        let isDamaged = try expectSecrets(store, content.registry, what)
        if case .unwritable = content.condition {
          // The header says that the file may only be read. Everything in it is proven.
          count.expect(content.registry == original, "\(what): silent")
          return .readOnly
        }
        guard content.condition == .writable else {
          let damage = content.condition.damage
          let isPlain = damage?.contains(#/PRAGMA|SELECT|INSERT|DELETE|BEGIN/#) == false
          count.expect(isPlain, "\(what): \(content.condition)")
          count.expect(store.commit(installed(500)) == content.condition, what)
          return .damaged
        }
        count.expect(content.registry == original, "\(what): silent")
        if store.commit(installed(500)) == nil { for change in installed(500) { expected.apply(change) } }
        _ = store.close()
        return isDamaged ? .damagedSecret : .exact
      }
      let next = try workspace.found()
      if outcome == .damaged {
        count.expect(next.condition.damage != nil, "\(what): the next start took it for good")
      } else {
        // The change may meet damage that the first start did not read. Such damage must be reported.
        count.expect(next.condition != .writable || next.registry == expected, "\(what): silent at the next start")
      }
      count.expect(next.registry.isPart(of: expected), "\(what): something was made up for the next start")
      return outcome
    } catch is StoreFailure {
      return .refused
    }
  }

  private func closedStore(apps: Int, items: [Known] = items, in workspace: Workspace) throws
    -> (files: [String: [UInt8]], registry: Registry)
  {
    let registry = try workspace.fill(items, behind: sample(apps: apps) + life)
    var files = try workspace.files()
    files["identityd.db-wal"] = nil
    return (files, registry)
  }

  @Test(arguments: UInt64(1)...(Trial.isLong ? 4 : 2))
  func `row 12: a database with a flipped bit is never served as right`(seed: UInt64)
    throws
  {
    let workspace = try Workspace(inMemory: true)
    let (files, registry) = try closedStore(apps: 16, in: workspace)
    let database = try #require(files["identityd.db"])
    var generator = SeededGenerator(seed)
    var outcomes: [Outcome: Int] = [:]
    for _ in 0..<Trial.rounds(700, long: 2_500) {
      let bit = Int.random(in: 0..<(8 * database.count), using: &generator)
      var changed = files
      changed["identityd.db"]?[bit / 8] ^= 1 << UInt8(bit % 8)
      outcomes[try live(changed, registry, in: workspace, "bit \(bit)"), default: 0] += 1
    }
    try report("bits flipped in a database")
    // Enough flips must have had an effect, otherwise the test proves nothing.
    #expect(outcomes[.damaged, default: 0] > 130 || Trial.isShort, "\(outcomes)")
    #expect(outcomes[.exact, default: 0] > 20 || Trial.isShort, "\(outcomes)")
    #expect(outcomes[.damagedSecret, default: 0] > 5 || Trial.isShort, "\(outcomes)")
  }

  @Test func `row 12: a flipped bit in the header of the first page is harmless or noticed`() throws {
    let workspace = try Workspace(inMemory: true)
    let (files, registry) = try closedStore(apps: 0, items: [], in: workspace)
    for bit in stride(from: 0, to: 8 * 108, by: Trial.isShort ? 31 : 1) {
      var changed = files
      changed["identityd.db"]?[bit / 8] ^= 1 << UInt8(bit % 8)
      _ = try live(changed, registry, in: workspace, "bit \(bit)")
    }
    try report("bits flipped in a database's first header")
  }

  @Test func `row 13: a database that is cut short anywhere is never served as right`() throws {
    let workspace = try Workspace(inMemory: true)
    let (files, registry) = try closedStore(apps: 16, in: workspace)
    let database = try #require(files["identityd.db"])
    for length in stride(from: 0, to: database.count, by: Trial.isShort ? 11 * 512 : 512) {
      var changed = files
      changed["identityd.db"] = Array(database.prefix(length))
      let outcome = try live(changed, registry, in: workspace, "\(length) of \(database.count) bytes")
      count.expect(outcome != .exact, "\(length) of \(database.count) bytes")
    }
    try report("databases cut short")
  }

  @Test func `row 12: a sector of zeros, or of another place, is never served as right`() throws {
    let workspace = try Workspace(inMemory: true)
    let (files, registry) = try closedStore(apps: 16, in: workspace)
    let database = try #require(files["identityd.db"])
    for place in stride(from: 0, to: database.count, by: Trial.isShort ? 11 * 512 : 512) {
      let range = place..<(place + 512)
      var zeros = files
      zeros["identityd.db"]?.replaceSubrange(range, with: [UInt8](repeating: 0, count: 512))
      _ = try live(zeros, registry, in: workspace, "zeros at \(place)")
      var moved = files
      let other = (place + 4_096) % database.count
      moved["identityd.db"]?.replaceSubrange(range, with: database[other..<(other + 512)])
      _ = try live(moved, registry, in: workspace, "sector \(other) at \(place)")
    }
    try report("sectors of zeros, or of another place")
  }

  /// Returns the files of a store that was killed, with the acknowledged changes in its log.
  private func killed(_ workspace: Workspace) throws -> (files: [String: [UInt8]], registry: Registry) {
    var registry = Registry()
    let files = try workspace.withStore { store, _ in
      for batch in sample(apps: 2) + life { try store.mustCommit(registry.recorded(batch)) }
      for known in Self.items.prefix(3) { try store.mustCommit(registry.recorded([store.storing(known)])) }
      return try workspace.files()
    }
    return (files, registry)
  }

  @Test func `row 13: a log that is cut short after a kill is damage, and no commit is silently lost`() throws {
    let workspace = try Workspace(inMemory: true)
    let other = try Workspace(inMemory: true)
    let (files, registry) = try killed(workspace)
    let log = try #require(files["identityd.db-wal"])
    try #require(log.count > 4_096)
    for length in stride(from: 0, through: log.count, by: Trial.isShort ? 11 * 512 : 512) {
      var changed = files
      changed["identityd.db-wal"] = Array(log.prefix(length))
      try expectWholeOrDamaged(changed, registry, in: other, "\(length) of \(log.count) bytes")
    }
    try report("logs cut short after a kill")
    try expectWholeOrDamaged(files, registry, in: other, "untouched")
    #expect(try other.found().condition == .writable)
  }

  @Test func `row 12: a flipped bit in the log after a kill is damage too`() throws {
    let workspace = try Workspace(inMemory: true)
    let other = try Workspace(inMemory: true)
    let (files, registry) = try killed(workspace)
    let log = try #require(files["identityd.db-wal"])
    var random = SeededGenerator(14)
    for _ in 0..<Trial.rounds(200, long: 5_000) {
      let place = Int.random(in: log.indices, using: &random)
      var changed = files
      changed["identityd.db-wal"]?[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      try expectWholeOrDamaged(changed, registry, in: other, "a bit at \(place)")
    }
    try report("bits flipped in a log after a kill")
  }

  private func expectWholeOrDamaged(
    _ files: [String: [UInt8]], _ registry: Registry, in workspace: Workspace, _ what: String
  ) throws {
    count.tried += 1
    try workspace.restore(files)
    let content = try workspace.withStore { store, content in
      let isDamaged = try expectSecrets(store, content.registry, what)
      count.expect(!isDamaged, "\(what): what stands in the log is there or not")
      return content
    }
    if content.condition == .writable {
      count.expect(content.registry == registry, "\(what)")
    } else {
      count.expect(content.condition.damage != nil, "\(what): \(content.condition)")
      count.expect(content.registry.isNothing, "\(what)")
    }
  }
}
