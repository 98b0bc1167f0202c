import Foundation
import TestSupport

/// One way in which the storage of a daemon fails at one moment.
struct StoragePoint: CustomStringConvertible {
  /// What the daemon does meanwhile.
  enum Moment: String, CaseIterable {
    /// It does what it is asked for.
    case request
    /// It does what it is asked for, and writes its store anew before, because something failed already.
    case rewrite
    case start, firstStart, stop
  }

  let kind: StoragePoints
  /// The call that fails, among those that can.
  let first: Int
  /// Whether it is killed as it is, and does not come to write its store anew.
  let isKilled: Bool

  var description: String { "\(kind) call \(first)\(isKilled ? ", killed" : "")" }
}

/// The points of one fault at one moment.
struct StoragePoints: CustomStringConvertible {
  let moment: StoragePoint.Moment
  /// What the daemon is asked for.
  let request: Int?
  let fault: StorageFault
  /// Whether every later call fails as well.
  let lasts: Bool
  /// How many calls can fail.
  let calls: Int

  /// Of the table of faults.
  var row: Int { fault.row ?? (lasts ? 4 : 3) }
  /// A stop is followed by a start in any case.
  private var ends: [Bool] { moment == .stop ? [false] : [false, true] }
  var count: Int { calls * ends.count }
  subscript(index: Int) -> StoragePoint {
    StoragePoint(kind: self, first: index / ends.count + 1, isKilled: ends[index % ends.count])
  }

  var description: String {
    "\(moment.rawValue) \(request.map(String.init) ?? ""): \(fault) \(lasts ? "from" : "at")"
  }

  /// As many of the points, as evenly as can be from all kinds.
  static func some(_ count: Int, of kinds: [StoragePoints], _ generator: inout SeededGenerator) -> [StoragePoint] {
    var left = kinds.shuffled(using: &generator).map { ($0, (0..<$0.count).shuffled(using: &generator)) }
    var points: [StoragePoint] = []
    while !left.isEmpty {
      for place in left.indices where points.count < count {
        if let index = left[place].1.popLast() { points.append(left[place].0[index]) }
      }
      left.removeAll { points.count == count || $0.1.isEmpty }
    }
    return points
  }
}

/// Tries every storage call of everything that the daemon does.
final class StorageSweep {
  private let swept: SweptDaemon
  private let requests: [SweptRequest]
  /// What can be seen without a request, and after it.
  private var before: [[String]] = []
  private var after: [[String]] = []
  private var device = ""
  /// Whether the daemon runs, with the state that was kept.
  private var isFresh = false

  init() throws {
    swept = try SweptDaemon()
    // A backup of an item that is deleted again.
    _ = try swept.ask(["item put service=s account=restored data=aGVsbG8="])
    let backup = try swept.daemon.backup()
    _ = try swept.ask(["item delete service=s account=restored"])
    requests = SweptRequest.all(restoring: backup)
    try swept.keep()
    device = try swept.ask(["get device"])
    for request in requests {
      try prepare(request)
      before.append(try swept.settled())
      try prepare(request)
      let answer = try swept.ask(request.lines)
      guard answer.hasPrefix("OK") else { throw Failure("\(request): \(answer)") }
      after.append(try swept.settled())
      isFresh = before.last == after.last
    }
  }

  /// Brings the daemon to the state that a request begins with.
  private func prepare(_ request: SweptRequest) throws {
    if !isFresh { try swept.restore() }
    isFresh = true
    for _ in 0..<request.preceding { try swept.touch() }
  }

  // MARK: Points

  /// All there are.
  func points() throws -> [StoragePoints] {
    try StoragePoint.Moment.allCases.flatMap { moment in
      switch moment {
      case .request, .rewrite:
        return try requests.indices.flatMap { index in
          try prepare(requests[index])
          if moment == .rewrite { try fail() }
          let calls = try swept.faults.calls { _ = try swept.ask(requests[index].lines) }
          isFresh = false
          return points(moment, index, calls)
        }
      case .start, .firstStart:
        try swept.putBack(empty: moment == .firstStart)
        isFresh = false
        return points(moment, nil, try swept.faults.calls { try swept.start() })
      case .stop:
        if !isFresh { try swept.restore() }
        isFresh = false
        return points(moment, nil, swept.faults.calls { swept.daemon.end() })
      }
    }
  }

  private func points(
    _ moment: StoragePoint.Moment, _ request: Int?, _ calls: [StorageFault.Call: Int]
  ) -> [StoragePoints] {
    StorageFault.all.flatMap { fault in
      (fault.lasts ? [false, true] : [false]).map { lasts in
        StoragePoints(
          moment: moment, request: request, fault: fault, lasts: lasts,
          calls: fault.calls.reduce(0) { $0 + (calls[$1] ?? 0) })
      }
    }
  }

  // MARK: Trials

  /// Lets the storage fail at one point.
  ///
  /// - Throws: what the daemon did that it must not do.
  /// - Returns: whether there was such a call.
  func attempt(_ point: StoragePoint) throws -> Bool {
    do {
      let didFail =
        switch point.kind.moment {
        case .request, .rewrite: try attemptRequest(point)
        case .start, .firstStart: try attemptStart(point)
        case .stop: try attemptStop(point)
        }
      let aside = try swept.names().filter { $0.contains("damaged") && point.kind.moment != .firstStart }
      guard aside.isEmpty else { throw Failure("set aside: \(aside)") }
      return didFail
    } catch {
      swept.faults.end()
      isFresh = false
      let name = point.kind.request.map { requests[$0].description } ?? ""
      throw Failure("\(point) (\(name)): \(error)")
    }
  }

  /// Lets a commit fail, so that the store has to be written anew.
  private func fail() throws {
    swept.faults.passTime()
    swept.faults.begin(Self.refusingCommits, at: 1, lasting: true)
    let answer = try swept.ask(["account set nobody"])
    swept.faults.end()
    guard answer.hasPrefix("ERR unknown ") else { throw Failure("a commit that cannot be written: \(answer)") }
    swept.faults.passTime()
  }

  private static let refusingCommits = StorageFault(description: "EIO", row: nil, calls: [.writing], error: EIO)

  private func attemptRequest(_ point: StoragePoint) throws -> Bool {
    guard let index = point.kind.request else { return false }
    try prepare(requests[index])
    if point.kind.moment == .rewrite { try fail() }
    swept.faults.begin(point.kind.fault, at: point.first, lasting: point.kind.lasts)
    let answer = try swept.ask(requests[index].lines)
    let isDone = answer.hasPrefix("OK")
    if !isDone {
      try expectReadsServed(after: answer, point)
    } else if point.kind.fault.isInvisible, point.kind.moment == .request {
      let condition = try swept.client.statusValue("store") ?? "none"
      guard condition == "ok" else { throw Failure("not invisible: the store is \(condition)") }
    }
    let failed = swept.faults.end()
    guard isDone || failed > 0 else { throw Failure("refused without a fault: \(answer)") }
    guard !isDone || !requests[index].isPlain || !swept.faults.leftUnsynced else {
      throw Failure("acknowledged though a sync failed")
    }
    if !point.isKilled {
      let seen = try swept.settled()
      try expect(seen, isDone ? after[index] : before[index], after: answer)
      isFresh = seen == before[index]
      // That what is seen is on disk need not be looked at each time.
      if point.first % 8 != 0 { return failed > 0 }
    }
    try swept.restart()
    let seen = try swept.settled()
    isFresh = seen == before[index]
    // A change without an answer, or with one that says so, may be there, and then as a whole. A refused one is not.
    let isOpen = answer.hasPrefix("ERR unknown ") || !answer.hasPrefix("ERR ")
    try expect(seen, isDone || isOpen && !isFresh ? after[index] : before[index], after: answer)
    return failed > 0
  }

  private func expectReadsServed(after answer: String, _ point: StoragePoint) throws {
    guard !point.kind.fault.isInvisible else { throw Failure("not invisible: \(answer)") }
    let codes = ["read-only", "no-space", "unknown", "internal", "unavailable"]
    guard codes.contains(where: { answer.hasPrefix("ERR \($0) ") }) else { throw Failure(answer) }
    let read = try swept.ask(["get device"])
    guard read == device else { throw Failure("the device is \(read)") }
    // A question says nothing of the store.
    guard answer.hasPrefix("ERR read-only ") || answer.hasPrefix("ERR no-space ") else { return }
    let condition = try swept.client.statusValue("store") ?? "none"
    guard answer.hasPrefix("ERR \(condition) ") else { throw Failure("'\(answer)', but the store is \(condition)") }
  }

  private func expect(_ seen: [String], _ expected: [String], after answer: String) throws {
    guard seen != expected else { return }
    let difference = seen.difference(from: expected).map { change in
      switch change {
      case .insert(_, let line, _): "+ \(line.prefix(200))"
      case .remove(_, let line, _): "- \(line.prefix(200))"
      }
    }
    throw Failure("after '\(answer)': \(difference.joined(separator: "\n"))")
  }

  private func attemptStart(_ point: StoragePoint) throws -> Bool {
    let isFirst = point.kind.moment == .firstStart
    try swept.putBack(empty: isFirst)
    isFresh = false
    swept.faults.begin(point.kind.fault, at: point.first, lasting: point.kind.lasts)
    let serves = try swept.startsDespiteFaults()
    let answer = serves ? try swept.ask([isFirst ? "get installation" : "get device"]) : ""
    if serves, !isFirst, answer.hasPrefix("OK"), answer != device { throw Failure("the device is \(answer)") }
    let failed = swept.faults.end()
    guard serves || failed > 0 else { throw Failure("no start without a fault: \(swept.daemon.log)") }
    if point.kind.fault.isInvisible {
      guard serves, answer.hasPrefix("OK") else { throw Failure("not invisible: \(answer) \(swept.daemon.log)") }
    }
    if serves, !point.isKilled, !isFirst {
      // A store that could not be read for seconds is served by the next start.
      if try swept.client.statusValue("store") != "read-error" {
        try expect(swept.settled(), before[0], after: answer)
      } else if answer.hasPrefix("OK") {
        throw Failure("'\(answer)' of a store that could not be read")
      }
    }
    if serves { try swept.restart() } else { try swept.start() }
    if isFirst {
      let found = try swept.ask(["get installation"])
      guard found.hasPrefix("OK"), !answer.hasPrefix("OK") || answer == found else {
        throw Failure("'\(answer)' was said, and now '\(found)'")
      }
      _ = try swept.settled()
    } else {
      let seen = try swept.settled()
      try expect(seen, before[0], after: answer)
      isFresh = true
    }
    return failed > 0
  }

  private func attemptStop(_ point: StoragePoint) throws -> Bool {
    if !isFresh { try swept.restore() }
    isFresh = false
    swept.faults.begin(point.kind.fault, at: point.first, lasting: point.kind.lasts)
    let status = swept.daemon.end()
    let failed = swept.faults.end()
    guard status == 0 else { throw Failure("exit status \(status)") }
    try swept.start()
    try expect(swept.settled(), before[0], after: "the end")
    isFresh = true
    return failed > 0
  }
}
