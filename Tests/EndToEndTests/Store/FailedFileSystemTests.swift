import Foundation
import TestSupport
import Testing

/// File systems that turn read-only after failed writes. Their page cache, and their metadata in memory, can have changes
/// that are gone once they are mounted again.
@Suite(
  .enabled(if: FailingDisk.missing == nil, Comment(rawValue: FailingDisk.missing ?? "")), .serialized)
struct FailedFileSystemTests {
  /// The answers of a client about the items `a0`, `a1`, …, each of which was put once.
  private struct View {
    let store: String
    let epoch: String
    /// The accounts.
    let items: Set<String>
    /// The events about items, by their numbers.
    let events: [Int: String]

    init(_ daemon: DaemonUnderTest) throws {
      let client = try daemon.client()
      store = try client.statusValue("store") ?? "none"
      epoch = try client.statusValue("epoch") ?? "none"
      let rows = try client.ask("item find service=s limit=all").dropLast()
      items = Set(
        rows.compactMap { row in row.split(separator: " ").first { $0.hasPrefix("account=") }.map(String.init) })
      var events: [Int: String] = [:]
      guard try client.subscribe("item since=0").first?.hasPrefix("OK ") == true else {
        self.events = [:]
        return
      }
      for _ in items {
        let line = try client.line() ?? ""
        let words = line.split(separator: " ", maxSplits: 2)
        if words.count == 3, let number = Int(words[1]) { events[number] = String(words[2]) }
      }
      self.events = events
    }
  }

  /// Puts items until one is refused.
  ///
  /// - Returns: the accounts of the acknowledged items, and of one whose outcome is unknown, if any.
  private func put(_ daemon: DaemonUnderTest, from first: Int, atMost count: Int) throws -> (Set<String>, String?) {
    let client = try daemon.client()
    var acknowledged: Set<String> = []
    for number in first..<first + count {
      let answer = try client.ask("item put service=s account=a\(number) data=eA==").last ?? ""
      if answer.hasPrefix("ERR unknown ") { return (acknowledged, "account=a\(number)") }
      guard answer == "OK created" else { return (acknowledged, nil) }
      acknowledged.insert("account=a\(number)")
    }
    return (acknowledged, nil)
  }

  /// Starts a daemon and returns its view; nil if it found an XFS that fails each call, the opening of a folder too.
  private func viewAfterStart(of daemon: DaemonUnderTest, on system: FailingDisk.FileSystem) throws -> View? {
    try daemon.launch()
    let deadline = Date(timeIntervalSinceNow: patience)
    while daemon.process.isRunning, (try? daemon.ask("ping")) != "OK", Date() < deadline { usleep(5_000) }
    guard daemon.process.isRunning else {
      #expect(system == .xfs && daemon.exitStatus() == 73, "\(daemon.log)")
      #expect(daemon.log.contains("\(daemon.state.path): Input/output error"), "\(daemon.log)")
      return nil
    }
    return try View(daemon)
  }

  @Test(arguments: FailingDisk.FileSystem.available)
  func `rows 3 and 20: a start on a file system that failed serves what was acknowledged, and nothing else`(
    system: FailingDisk.FileSystem
  ) throws {
    var generator = SeededGenerator(11)
    var (readOnly, open) = (0, 0)
    for _ in 0..<Trial.rounds(6, long: 60) {
      let daemon = try DaemonUnderTest(inMemory: true)
      let disk = try FailingDisk(
        system, in: daemon.folder, mountedOn: daemon.state, options: system == .ext4 ? ["errors=remount-ro"] : [])
      defer { disk.remove() }
      try daemon.start()
      let device = try daemon.uuid("get device")
      let count = Int.random(in: 3...40, using: &generator)
      var (acknowledged, unknown) = try put(daemon, from: 0, atMost: count)
      try #require(acknowledged.count == count && unknown == nil)
      disk.fails = true
      let (more, uncertain) = try put(daemon, from: count, atMost: 10)
      acknowledged.formUnion(more)
      unknown = uncertain
      if unknown != nil { open += 1 }
      // The file system meets its error at the latest when it has to write its own metadata.
      _ = try run(["sync", "--file-system", daemon.state.path])
      daemon.end(with: Bool.random(using: &generator) ? SIGKILL : SIGTERM)
      let seen = try viewAfterStart(of: daemon, on: system)
      if let seen {
        if seen.store == "read-only" { readOnly += 1 }
        #expect(try daemon.uuid("get device") == device)
        #expect(seen.items == acknowledged, "\(seen.store), unknown: \(unknown ?? "none")\n\(daemon.log)")
        daemon.end(with: SIGKILL)
      }
      disk.fails = false
      try disk.remount()
      try daemon.start()
      #expect(try daemon.uuid("get device") == device)
      let (later, _) = try put(daemon, from: 1_000, atMost: 3)
      #expect(later.count == 3)
      let after = try View(daemon)
      #expect(after.store == "ok")
      #expect(after.items.subtracting([unknown ?? ""]) == acknowledged.union(later))
      if let seen, after.epoch == seen.epoch {
        for (number, event) in seen.events { #expect(after.events[number] == event, "event \(number)") }
      }
      daemon.end(with: SIGKILL)
    }
    #expect(system == .xfs || readOnly > 0)
    #expect(open > 0)
  }
}
