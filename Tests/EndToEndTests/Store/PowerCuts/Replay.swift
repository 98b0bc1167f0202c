import Foundation
import IdentityCore
import IdentityWire
import TestSupport

/// Opens the states that power cuts leave of a recorded daemon's state directory, and compares them with the
/// acknowledged changes.
struct Replay {
  /// An opened state that the daemon itself is to serve.
  struct Sample {
    let files: [String: Data]
    let found: FoundStore
  }

  private let recording: StorageRecording
  /// The store before the recording. Nil for a first start.
  private let base: FoundStore?
  /// The stores after each transaction, keyed by its number. `since` is the first moment at which the store existed. A
  /// refused transaction is followed by another one with the same number.
  private var references: [Int64: [(since: Int, store: FoundStore)]] = [:]
  /// The last event that a client knew of, by an event line or an acknowledgement, for each number of completed steps.
  private var required: [Int64]
  private let directory: CutDirectory
  /// The results by a hash of the directory's content: many cuts leave the same content.
  private var opened: [Int: Result<FoundStore, Failure>] = [:]

  /// The number of different states that were opened.
  var states: Int { opened.count }
  /// The number of cuts.
  private(set) var cuts = 0
  /// The faults: stores that are not intact, and stores without an acknowledged change.
  private(set) var losses: [String] = []
  /// Some of the opened states.
  private(set) var samples: [Sample] = []
  /// The number of moments at which the power can be cut.
  var moments: Int { recording.steps.count + 1 }
  /// The number of recorded transactions.
  var transactions: Int { references.count }

  init(_ recorded: RecordedDaemon) throws {
    recording = recorded.recording
    directory = try CutDirectory()
    required = [Int64](repeating: 0, count: recording.steps.count + 1)
    if recording.initial.isEmpty {
      base = nil
    } else {
      try directory.fill(recording.initial)
      let found = try directory.open()
      // A power cut during a first start leaves files that are not a store yet.
      base = found.isNew ? nil : found
      required[0] = found.registry.lastEvent
    }
    try findReferences()
    for (event, after) in recording.told { required[after] = max(required[after], event) }
    try require(recorded.effects)
    for place in required.indices.dropFirst() { required[place] = max(required[place], required[place - 1]) }
  }

  // MARK: Requirements

  /// Opens the state at each moment with nothing lost, and so finds the store after each transaction.
  private mutating func findReferences() throws {
    var disk = ModelDisk(recording.initial)
    var generator = SeededGenerator(0)
    for moment in 0..<moments {
      if moment > 0 { disk.take(recording.steps[moment - 1]) }
      switch try open(disk.cut(losing: .nothing, &generator)) {
      case .success(let found) where found.isNew: continue
      case .success(let found):
        if references[found.revision]?.last?.store.isSame(as: found) != true {
          references[found.revision, default: []].append((moment, found))
        }
      case .failure(let failure): throw Failure("with nothing lost, moment \(moment): \(failure)")
      }
    }
    let revisions = references.keys.sorted()
    guard let first = revisions.first, let last = revisions.last, Int64(revisions.count) == last - first + 1 else {
      throw Failure("the transactions have gaps: \(revisions)")
    }
  }

  /// Finds the event of each acknowledged request. From the acknowledgement on, a store must have the event and
  /// the secret.
  private mutating func require(_ effects: [String: RecordedDaemon.Effect]) throws {
    guard let last = references.keys.max().flatMap({ references[$0] })?.last?.store else { return }
    var found = 0
    for exchange in recording.exchanges {
      guard exchange.reply.hasPrefix("OK"), let effect = effects[exchange.request] else { continue }
      let reply = exchange.reply.split(separator: " ")
      let words = effect.words.map { reply.count > 1 ? $0.replacingOccurrences(of: "REPLY", with: reply[1]) : $0 }
      let events = last.events(saying: words)
      guard events.count == 1 else { throw Failure("\(exchange.request): \(events.count) events say \(words)") }
      let event = events[0].sequence
      required[exchange.after] = max(required[exchange.after], event)
      let stores = references.values.compactMap(\.last?.store).filter { $0.registry.lastEvent >= event }
      if let (name, secret) = effect.secret, stores.min(by: { $0.revision < $1.revision })?.secrets[name] != secret {
        throw Failure("\(exchange.request) was acknowledged and is not what is stored")
      }
      found += 1
    }
    guard found == effects.count else { throw Failure("\(found) of \(effects.count) requests were acknowledged") }
  }

  // MARK: Cuts

  /// Cuts the power at random moments until `target` different states have been opened.
  mutating func cut(_ target: Int, seed: UInt64, samples wanted: Int = 0) throws {
    var generator = SeededGenerator(seed)
    let share = min(1, Double(target) / Double(moments))
    // A recording with few unsynced changes has fewer different states than wanted.
    var passes = 0
    while states < target, passes < 200 {
      passes += 1
      var disk = ModelDisk(recording.initial)
      for moment in 0..<moments {
        if moment > 0 { disk.take(recording.steps[moment - 1]) }
        guard Double.random(in: 0..<1, using: &generator) < share else { continue }
        let loss = generator.one(of: [.everything, .content, .names, .some, .some, .some, .some] as [ModelDisk.Loss])
        let files = disk.cut(losing: loss, &generator)
        cuts += 1
        try judge(files, moment, loss)
        if samples.count < wanted, generator.once(in: max(1, target / wanted / 2)),
          case .success(let found) = try open(files)
        {
          samples.append(Sample(files: files, found: found))
        }
      }
    }
  }

  private mutating func judge(_ files: [String: Data], _ moment: Int, _ loss: ModelDisk.Loss) throws {
    func lose(_ what: String) {
      losses.append("cut at \(moment) of \(moments), losing \(loss): \(what)")
    }
    switch try open(files) {
    case .failure(let failure): lose("\(failure)")
    case .success(let found) where found.isNew:
      if base != nil || required[moment] > 0 { lose("a second store was made") }
    case .success(let found):
      if found.registry.lastEvent < required[moment] {
        lose("event \(required[moment]) was told, \(found.registry.lastEvent) is the last")
      } else if !isKnown(found, at: moment) {
        lose("transaction \(found.revision) is not what it was")
      }
    }
  }

  /// Whether the store is one of the references. A store with a refused transaction may exist until a client knows of
  /// the event in its place.
  private func isKnown(_ found: FoundStore, at moment: Int) -> Bool {
    let known = references[found.revision, default: []].filter { $0.since <= moment }
    guard let last = known.last?.store else { return false }
    return found.isSame(as: last)
      || (required[moment] < last.registry.lastEvent && known.contains { found.isSame(as: $0.store) })
  }

  /// Opens a state as a start does. A second start must find the same store.
  private mutating func open(_ files: [String: Data]) throws -> Result<FoundStore, Failure> {
    var hasher = Hasher()
    for (name, content) in files.sorted(by: { $0.key < $1.key }) {
      hasher.combine(name)
      hasher.combine(content.count)
      unsafe content.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
    }
    let key = hasher.finalize()
    if let known = opened[key] { return known }
    try directory.fill(files)
    let result: Result<FoundStore, Failure>
    do {
      let found = try directory.open()
      // Checks only some of the states, because a second start doubles the cost.
      if Trial.isLong || opened.count % 4 == 0 {
        let again = try directory.open()
        guard again.isSame(as: found) else { throw Failure("the second start finds something else than the first") }
      }
      result = .success(found)
    } catch {
      result = .failure(Failure("\(error)"))
    }
    opened[key] = result
    return result
  }
}
