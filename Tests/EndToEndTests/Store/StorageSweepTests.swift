import Foundation
import TestSupport
import Testing

@Suite(.enabled(if: isRoot, "the changes take an admin"), .tags(.trial)) struct StorageSweepTests {
  /// How many points of each row the usual run tries.
  private static let usual = [(1, 40), (2, 40), (3, 100), (4, 100), (5, 50), (6, 40), (11, 50), (20, 30)]
  /// How many of each the long one tries: 10,000 together.
  private static let long = 1_200

  /// A real daemon whose storage calls fail, one after another: once or for ever, in every request, start and stop, and
  /// while it recovers from a failure before.
  @Test func `rows 1, 2, 3, 4, 5, 6, 11 and 20: whichever storage call fails, nothing is lost, made up or left broken`()
    throws
  {
    let sweep = try StorageSweep()
    var generator = SeededGenerator(1)
    let points = try sweep.points()
    for (row, usual) in Self.usual {
      let all = points.filter { $0.row == row }
      var (tried, broken) = (0, [String]())
      for point in StoragePoints.some(Trial.rounds(usual, long: Self.long), of: all, &generator) {
        do {
          if try sweep.attempt(point) { tried += 1 }
        } catch {
          broken.append("\(error)")
        }
      }
      try Trial("storage calls that fail, row \(row)").report(
        tried: tried, lost: broken.count, "of \(all.reduce(0) { $0 + $1.count }) points")
      #expect(tried > Trial.rounds(usual, long: Self.long) / 2)
      #expect(broken.isEmpty, "row \(row): \(broken.count) of \(tried)\n\(broken.prefix(10).joined(separator: "\n"))")
    }
  }

  @Test func `row 5: a commit is acknowledged even if its files cannot be checked afterwards`() throws {
    let swept = try SweptDaemon()
    let looking = StorageFault(description: "EIO", row: 5, calls: [.asking], error: EIO)
    // The first commit looks at more than those behind it.
    #expect(try swept.ask(["account set zero"]) == "OK")
    let calls = try swept.faults.calls { _ = try swept.ask(["account set one"]) }
    swept.faults.begin(looking, at: try #require(calls[.asking]), lasting: true)
    #expect(try swept.ask(["account set two"]) == "OK")
    #expect(swept.faults.struck > 0, "the commit did not meet the fault")
    #expect(try swept.ask(["account set three"]).hasPrefix("ERR read-only "))
    swept.faults.end()
    _ = try swept.settled()
    #expect(try swept.ask(["account"]) == "OK two")
    try swept.restart()
    #expect(try swept.ask(["account"]) == "OK two")
  }

  @Test func `row 3: a key rotation that fails anywhere sets no key aside`() throws {
    let swept = try SweptDaemon()
    try swept.keep()
    let failing = try #require(StorageFault.all.first { $0.way == .doneYetRefused })
    var failed = 0
    for call in 1...20 {
      swept.faults.begin(failing, at: call, lasting: false)
      let answer = try swept.ask(["key rotate"])
      swept.faults.end()
      _ = try swept.settled()
      #expect(try !swept.names().contains { $0.contains("damaged") }, "set aside: call \(call), \(answer)")
      if !answer.hasPrefix("OK") { failed += 1 }
      try swept.restart()
      #expect(try swept.ask(["item read service=s account=a0"]).hasPrefix("OK "), "locked: call \(call)")
      try swept.restore()
    }
    #expect(failed > 3)
  }

  @Test func `row 5: a read that fails once during a start neither locks an item nor sets a file aside`() throws {
    let swept = try SweptDaemon()
    try swept.keep()
    let reading = StorageFault(description: "EIO", row: 5, calls: [.reading], error: EIO)
    try swept.putBack()
    let calls = try swept.faults.calls { try swept.start() }
    var starts = 0
    for call in 1...(try #require(calls[.reading])) {
      try swept.putBack()
      swept.faults.begin(reading, at: call, lasting: false)
      let serves = try swept.startsDespiteFaults()
      #expect(try !swept.names().contains { $0.contains("damaged") }, "set aside: read \(call)")
      // A start may refuse to go on without a file that it cannot read: it says so, and the next start reads the file.
      guard serves else { continue }
      #expect(try swept.ask(["item read service=s account=a0"]).hasPrefix("OK "), "locked: read \(call)")
      starts += 1
    }
    #expect(starts > 0)
  }

  @Test func `row 6: a start goes on, whichever file a signal keeps it from opening`() throws {
    let swept = try SweptDaemon()
    try swept.keep()
    let opening = StorageFault(
      description: "EINTR", row: 6, calls: [.opening, .openingToWrite, .creating], error: EINTR)
    try swept.putBack()
    let calls = try swept.faults.calls { try swept.start() }
    var interrupted = 0
    for call in 1...opening.calls.reduce(0, { $0 + (calls[$1] ?? 0) }) {
      try swept.putBack()
      swept.faults.begin(opening, at: call, lasting: false)
      try #require(try swept.startsDespiteFaults(), "file \(call): \(swept.daemon.log)")
      interrupted += swept.faults.end()
      #expect(try swept.ask(["item read service=s account=a0"]).hasPrefix("OK "), "file \(call)")
    }
    // Some starts open one file less.
    #expect(interrupted > 10)
  }

  /// Returns the fault that refuses the calls by which a start reads the state directory.
  private func refusal(_ error: Int32) -> StorageFault {
    var calls: Set<StorageFault.Call> = [.opening, .openingToWrite, .creating, .reading, .asking, .listing]
    // With EACCES, the kernel says that another process holds the lock.
    if error != EACCES { calls.insert(.locking) }
    return StorageFault(description: "error \(error)", row: 5, calls: calls, error: error)
  }

  @Test(arguments: [EIO, EROFS, ESTALE, EACCES])
  func `row 5: whichever call of a start the disk refuses once, the start goes on and everything is served`(
    error: Int32
  ) throws {
    let swept = try SweptDaemon()
    try swept.keep()
    let device = try swept.ask(["get device"])
    let fault = refusal(error)
    try swept.putBack()
    let made = try swept.faults.calls { try swept.start() }
    let calls = fault.calls.reduce(0) { $0 + (made[$1] ?? 0) }
    var failed = 0
    for call in 1...calls {
      try swept.putBack()
      swept.faults.begin(fault, at: call, lasting: false)
      guard try swept.startsDespiteFaults() else {
        Issue.record("call \(call) ended the start: \(swept.daemon.log)")
        continue
      }
      failed += swept.faults.end()
      #expect(try swept.ask(["get device"]) == device, "call \(call)")
      #expect(try swept.ask(["item read service=s account=a0"]).hasPrefix("OK "), "call \(call)")
      #expect(try !swept.names().contains { $0.contains("damaged") }, "call \(call)")
      _ = try swept.settled()
      #expect(try swept.client.statusValue("store") == "ok", "call \(call)")
    }
    #expect(failed > calls * 9 / 10, "\(failed) of \(calls)")
  }

  @Test(arguments: [EIO, EROFS, ESTALE, EACCES])
  func `rows 5 and 20: from whichever call on the disk refuses a start's calls, the daemon serves what it can read`(
    error: Int32
  ) throws {
    let swept = try SweptDaemon()
    try swept.keep()
    let device = try swept.ask(["get device"])
    let fault = refusal(error)
    try swept.putBack()
    let made = try swept.faults.calls { try swept.start() }
    let calls = fault.calls.reduce(0) { $0 + (made[$1] ?? 0) }
    var (served, unserved) = (0, 0)
    // Each error begins elsewhere, so that together they try more of the calls. Few calls follow the last one that reads
    // the device identifier, so the last call is always tried.
    let tried = Array(stride(from: 1 + Int(error) % 7, to: calls, by: Trial.isLong ? 1 : 17)) + [calls]
    for call in tried {
      try swept.putBack()
      swept.faults.begin(fault, at: call, lasting: true)
      let starts = try swept.startsDespiteFaults(hurries: true)
      if starts {
        let answer = try swept.ask(["get device"])
        if answer == device { served += 1 } else { unserved += 1 }
        #expect(answer == device || answer.hasPrefix("ERR unavailable "), "call \(call): \(answer)")
      } else {
        // The folder itself is opened first. Without it there is nothing to serve.
        #expect(call <= 6 && swept.daemon.exitStatus() == 73, "call \(call) ended the start: \(swept.daemon.log)")
      }
      swept.faults.end()
      #expect(try !swept.names().contains { $0.contains("damaged") }, "call \(call)")
      if starts { try swept.restart() } else { try swept.start() }
      #expect(try swept.ask(["get device"]) == device, "call \(call)")
      #expect(try swept.ask(["item read service=s account=a0"]).hasPrefix("OK "), "call \(call)")
      #expect(try swept.client.statusValue("store") == "ok", "call \(call)")
    }
    #expect(served > 0 && unserved > 0)
  }
}
