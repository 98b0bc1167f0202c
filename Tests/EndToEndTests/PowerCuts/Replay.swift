import Foundation
import IdentityCore
import TestSupport

/// Opens what power cuts would have left of a recorded daemon's state directory, and compares it with what was acknowledged.
struct Replay {
  /// A state that was opened, for a look at it with the daemon itself.
  struct Sample {
    let files: [String: Data]
    let found: FoundStore
  }

  private let recording: StorageRecording
  /// What was there before the recording; nil for a first start.
  private let base: FoundStore?
  /// The store after each of its transactions, and the moment from which on it was there. A transaction that was refused is
  /// followed by another one with its number.
  private var references: [Int64: [(since: Int, store: FoundStore)]] = [:]
  /// The last event that somebody was told of when so many steps were done.
  private var required: [Int64]
  private let directory: CutDirectory
  /// By what was in the directory: many cuts leave the same.
  private var opened: [Int: Result<FoundStore, Failure>] = [:]

  /// How many different states were opened.
  var states: Int { opened.count }
  /// How many cuts were made.
  private(set) var cuts = 0
  /// What was wrong: a store that is not in order, or that has not what was acknowledged.
  private(set) var losses: [String] = []
  /// Some of the states.
  private(set) var samples: [Sample] = []
  /// How many moments there are to cut at.
  var moments: Int { recording.steps.count + 1 }
  /// How many transactions were recorded.
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
      base = found
      required[0] = found.registry.lastEvent
    }
    try findReferences()
    for (event, after) in recording.told { required[after] = max(required[after], event) }
    try require(recorded.effects)
    for place in required.indices.dropFirst() { required[place] = max(required[place], required[place - 1]) }
  }

  // MARK: What there has to be

  /// Opens what is there at each moment if nothing is lost: that is the store after each transaction.
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

  /// Finds the event of each acknowledged request: from the acknowledgement on it has to be there, and the secret with it.
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

  /// Cuts the power at random moments until so many different states were opened.
  mutating func cut(_ target: Int, seed: UInt64, samples wanted: Int = 0) throws {
    var generator = SeededGenerator(seed)
    let share = min(1, Double(target) / Double(moments))
    // Where there is little to lose, there are not as many states.
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

  /// Whether the store was like that: one that was refused may be there until the one in its place was told.
  private func isKnown(_ found: FoundStore, at moment: Int) -> Bool {
    let known = references[found.revision, default: []].filter { $0.since <= moment }
    guard let last = known.last?.store else { return false }
    return found.isSame(as: last)
      || (required[moment] < last.registry.lastEvent && known.contains { found.isSame(as: $0.store) })
  }

  /// What a start finds; and what the start after it finds has to be the same.
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
      // It costs as much again.
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
