import IdentityCore
import IdentityStore
import TestSupport
import Testing

/// Flipped bits, sectors of zeros, of another place or of an earlier time, and truncation, in every file of a store,
/// however its run ended. A start may report any condition, but it must serve nothing wrong.
@Suite(.tags(.trial)) struct DamagedFileTests {
  /// The way in which the store's run ended.
  enum Ending: CaseIterable, Sendable { case closed, killed, powerCut }

  /// The damage to a file of a known length.
  enum Damage {
    case bit(Int)
    case zeros(Range<Int>)
    /// A part that has the content of another place.
    case copied(Range<Int>, from: Int)
    case swapped(Range<Int>, with: Int)
    /// A part that has the content of an earlier time.
    case earlier(Range<Int>)
    case cut(Int)

    /// Returns the damaged content of a file; nil if the damage changes nothing.
    func damaged(_ bytes: [UInt8], earlier: [UInt8]?) -> [UInt8]? {
      var damaged = bytes
      switch self {
      case .bit(let bit): damaged[bit / 8] ^= 1 << UInt8(bit % 8)
      case .zeros(let range): damaged.replaceSubrange(range, with: [UInt8](repeating: 0, count: range.count))
      case .copied(let range, let place):
        guard place + range.count <= bytes.count else { return nil }
        damaged.replaceSubrange(range, with: bytes[place..<place + range.count])
      case .swapped(let range, let place):
        guard place + range.count <= bytes.count, !range.overlaps(place..<place + range.count) else { return nil }
        damaged.replaceSubrange(range, with: bytes[place..<place + range.count])
        damaged.replaceSubrange(place..<place + range.count, with: bytes[range])
      case .earlier(let range):
        guard let earlier, earlier.count >= range.upperBound else { return nil }
        damaged.replaceSubrange(range, with: earlier[range])
      case .cut(let length): damaged.removeLast(bytes.count - length)
      }
      return damaged == bytes ? nil : damaged
    }
  }

  /// The result of a start with a damaged file. With `damagedSecret` the store is exact except for secrets.
  enum Outcome: Sendable { case exact, damagedSecret, locked, older, readOnly, damaged, refused }

  /// The files of a store at its end, and its earlier states.
  private struct Subject {
    let ending: Ending
    let files: [String: [UInt8]]
    /// The files after half of the commits.
    let earlier: [String: [UInt8]]
    /// The registry after each commit.
    let registries: [Registry]
    let latest: Registry

    init(_ ending: Ending, apps: Int, items: [Known]) throws {
      let workspace = try Workspace(inMemory: true)
      var registry = Registry()
      var registries = [registry]
      var earlier: [String: [UInt8]] = [:]
      let batches = sample(apps: apps) + life
      files = try workspace.withStore { store, _ in
        let witness = try workspace.read("witness.latest")
        for (number, batch) in batches.enumerated() {
          try store.mustCommit(registry.recorded(batch))
          registries.append(registry)
          if number == batches.count / 2 { earlier = try workspace.files() }
        }
        for known in items {
          try store.mustCommit(registry.recorded([store.storing(known)]))
          registries.append(registry)
        }
        if ending == .closed { try store.mustClose() }
        // Writes to this file since the start did not reach the disk.
        return try workspace.files().merging(ending == .powerCut ? ["witness.latest": witness] : [:]) { $1 }
      }
      self.ending = ending
      self.earlier = earlier
      self.registries = registries
      latest = registry
    }
  }

  /// A number of damages to one file.
  struct Case: CustomTestStringConvertible, Sendable {
    /// The words of the table that `packaging/test --long` prints.
    let testDescription: String
    let ending: Ending
    let file: String
    var apps = 16
    var items = DamagedFileTests.items
    /// How often an outcome must occur: otherwise the damage has too little effect to prove anything.
    var least: [Outcome: Int] = [:]
    /// Returns the damages to a file of this length.
    let damages: @Sendable (Int) -> [Damage]
  }

  private static let items = (1...5 as ClosedRange<Int64>).map { Known($0, length: Int($0) * Int($0) * 120) }
  private static let database = "identityd.db"
  private static let log = "identityd.db-wal"

  /// Returns the damage of each place at which a sector begins, and at the end.
  private static func sectors(_ length: Int, _ damages: (Int) -> [Damage]) -> [Damage] {
    stride(from: 0, through: length, by: Trial.isShort ? 11 * 512 : 512).flatMap(damages)
  }

  private static func bits(_ rounds: Int, seed: UInt64) -> @Sendable (Int) -> [Damage] {
    return { length in
      var random = SeededGenerator(seed)
      return (0..<rounds).map { _ in .bit(Int.random(in: 0..<8 * length, using: &random)) }
    }
  }

  private static let flipped =
    (UInt64(1)...(Trial.isLong ? 4 : 2)).map {
      Case(
        testDescription: "bits flipped in a database", ending: .closed, file: database,
        least: [.damaged: 131, .exact: 21, .damagedSecret: 6], damages: bits(Trial.rounds(700, long: 2_500), seed: $0))
    } + [
      Case(
        testDescription: "bits flipped in a log after a kill", ending: .killed, file: log, apps: 2,
        items: Array(items.prefix(3)), damages: bits(Trial.rounds(200, long: 5_000), seed: 14)),
      Case(
        testDescription: "bits flipped in a database's first header", ending: .closed, file: database, apps: 0,
        items: []
      ) { _ in stride(from: 0, to: 8 * 108, by: Trial.isShort ? 31 : 1).map { .bit($0) } },
      Case(testDescription: "sectors of zeros, or of another place", ending: .closed, file: database) { length in
        sectors(length - 512) {
          [.zeros($0..<$0 + 512), .copied($0..<$0 + 512, from: ($0 + 4_096) % length)]
        }
      },
    ]

  @Test(arguments: flipped) func `row 12: a file with flipped bits or other sectors is never served as right`(
    each: Case
  ) throws { try expectNothingWrong(each) }

  private static let truncated = [
    Case(testDescription: "databases cut short", ending: .closed, file: database) { length in
      sectors(length - 1) { [.cut($0)] }
    },
    Case(
      testDescription: "logs cut short after a kill", ending: .killed, file: log, apps: 2, items: Array(items.prefix(3))
    ) { length in sectors(length - 1) { [.cut($0)] } },
  ]

  @Test(arguments: truncated) func `row 13: a file that is cut short anywhere is never served as right`(
    each: Case
  ) throws {
    let outcomes = try expectNothingWrong(each)
    #expect(outcomes[.exact] == nil, "\(outcomes)")
  }

  @Test func `no damage to any file leads to wrong data`() throws {
    let subjects = try Ending.allCases.map { try Subject($0, apps: 3, items: Self.items) }
    let workspace = try Workspace(inMemory: true)
    var random = SeededGenerator(21)
    let rounds = Trial.rounds(600, long: 10_000)
    var (tried, wrong) = (0, 0)
    while tried < rounds {
      guard let subject = subjects.randomElement(using: &random),
        // The database and its log hold nearly all data.
        let name = Bool.random(using: &random)
          ? [Self.database, Self.log].randomElement(using: &random)
          : subject.files.keys.sorted().randomElement(using: &random), name != "lock",
        let bytes = subject.files[name], !bytes.isEmpty
      else { continue }
      func place() -> Int { Int.random(in: bytes.indices, using: &random) }
      let unit = bytes.count > 8_192 ? 4_096 : 64
      let start = place() / unit * unit
      let range = start..<min(start + unit, bytes.count)
      let damages: [Damage] = [
        .bit(8 * place() + Int.random(in: 0..<8, using: &random)), .zeros(range), .earlier(range), .cut(place()),
        .swapped(range, with: place() / unit * unit),
      ]
      guard let damage = damages.randomElement(using: &random),
        let damaged = damage.damaged(bytes, earlier: subject.earlier[name])
      else { continue }
      tried += 1
      var fault: String?
      _ = try outcome(of: subject, name, damaged, in: workspace) { fault = fault ?? $0 }
      guard let fault else { continue }
      wrong += 1
      Issue.record("\(subject.ending), \(damage) in \(name): \(fault)")
    }
    try Trial("damage of every kind to every file").report(tried: tried, lost: wrong)
  }

  /// Expects that no damage of a case leads to wrong data.
  @discardableResult private func expectNothingWrong(_ each: Case) throws -> [Outcome: Int] {
    let subject = try Subject(each.ending, apps: each.apps, items: each.items)
    let workspace = try Workspace(inMemory: true)
    let bytes = try #require(subject.files[each.file])
    #expect(try outcome(of: subject, each.file, bytes, in: workspace) { Issue.record("undamaged: \($0)") } == .exact)
    var outcomes: [Outcome: Int] = [:]
    var (tried, wrong) = (0, 0)
    for damage in each.damages(bytes.count) {
      guard let damaged = damage.damaged(bytes, earlier: nil) else { continue }
      tried += 1
      var faults: [String] = []
      outcomes[try outcome(of: subject, each.file, damaged, in: workspace) { faults.append($0) }, default: 0] += 1
      if !faults.isEmpty { wrong += 1 }
      #expect(faults.isEmpty, "\(damage)")
    }
    try Trial(each.testDescription).report(tried: tried, lost: wrong)
    #expect(tried > 20 || Trial.isShort)
    for (outcome, least) in each.least {
      #expect(outcomes[outcome, default: 0] >= least || Trial.isShort, "\(outcomes)")
    }
    return outcomes
  }

  // MARK: One start

  /// Runs a start with a damaged file, a change and another start, and names everything wrong.
  private func outcome(
    of subject: Subject, _ name: String, _ bytes: [UInt8], in workspace: Workspace, wrong: (String) -> Void
  ) throws -> Outcome {
    func require(_ isRight: Bool, _ text: @autoclosure () -> String) { if !isRight { wrong(text()) } }
    try workspace.restore(subject.files.merging([name: bytes]) { $1 })
    var expected = subject.latest
    do {
      let outcome = try workspace.withStore { store, content -> Outcome in
        let registry = content.registry
        // A known fault, listed in Decisions/0049: after a power cut, changes that are only in the log can be lost, but
        // only as whole changes.
        if subject.ending == .powerCut, name == Self.log, content.condition == .writable, registry != expected {
          require(subject.registries.contains(registry), "something else is served")
          return .older
        }
        require(registry.isPart(of: expected), "something was made up")
        let isDamaged = try hasDamagedSecret(store, registry, wrong)
        require(name != Self.log || !isDamaged, "a change in the log is there in part")
        if case .unwritable = content.condition {
          // The header says that the file may only be read. Everything in it is proven.
          require(registry == expected, "a part is missing")
          return .readOnly
        }
        guard content.condition == .writable else {
          require(content.condition.damage?.contains(#/PRAGMA|SELECT|INSERT|DELETE|BEGIN/#) == false, "no plain reason")
          require(store.commit(installed(500)) == content.condition, "a change is taken")
          require(Self.differing(registry, expected).isSubset(of: registry.unproven), "a list lacks something")
          if name == Self.log { require(registry.isNothing, "something of a damaged log is served") }
          return .damaged
        }
        // Without the master key the items are present, but locked.
        if name == "master.key", registry.itemFault != nil { return .locked }
        require(registry == expected, "a part is missing")
        if store.commit(installed(500)) == nil { for change in installed(500) { expected.apply(change) } }
        _ = store.close()
        return isDamaged ? .damagedSecret : .exact
      }
      if [.older, .locked].contains(outcome) { return outcome }
      let next = try workspace.found()
      if outcome == .damaged {
        require(next.condition.damage != nil, "the next start takes it for good")
      } else {
        // The change may meet damage that the first start did not read. Such damage must be reported.
        require(next.condition != .writable || next.registry == expected, "a part is missing at the next start")
      }
      require(next.registry.isPart(of: expected), "something was made up for the next start")
      return outcome
    } catch is StoreFailure {
      return .refused
    }
  }

  /// Returns the kinds of which an answer about all records differs. A list or a default is such an answer.
  private static func differing(_ one: Registry, _ other: Registry) -> Records {
    var kinds: Records = []
    if one.account != other.account { kinds.insert(.settings) }
    if one.devices != other.devices { kinds.insert(.devices) }
    if one.apps != other.apps { kinds.insert(.apps) }
    if one.versions != other.versions { kinds.insert(.versions) }
    if one.tokens != other.tokens { kinds.insert(.tokens) }
    if one.history != other.history { kinds.insert(.identifiers) }
    return kinds
  }

  /// Returns whether some secrets cannot be read. All others must be the right ones.
  private func hasDamagedSecret(_ store: borrowing Store, _ registry: Registry, _ wrong: (String) -> Void) throws
    -> Bool
  {
    guard registry.itemFault == nil, let reader = store.makeItemReader() else { return false }
    let memory = try store.makeSecretMemory()
    var isDamaged = false
    for known in Self.items where registry.items[known.item.key] == known.item {
      do {
        var text: [UInt8] = []
        let isOpened = try memory.append(store.secret(of: known.item), as: .base64, to: &text)
        if !isOpened || text != known.base64 { wrong("a wrong secret") }
      } catch {
        guard case .broken = error else { throw error }
        isDamaged = true
      }
      let answer = ReaderAnswer(reader, known.item, memory)
      if answer != .appended(known), !isDamaged || answer.text != ReaderAnswer.changed.text {
        wrong("a wrong secret is read")
      }
    }
    return isDamaged
  }
}
