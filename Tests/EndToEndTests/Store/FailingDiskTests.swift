import Foundation
import TestSupport
import Testing

private let isBuildServer = ProcessInfo.processInfo.environment["CI"] == "true"

@Test(.enabled(if: isBuildServer, "only a build server has to be able to run everything"))
func `a build server can create a disk that fails on demand`() {
  #expect(FailingDisk.missing == nil)
  #expect(FailingDisk.FileSystem.available.contains(.ext4))
}

@Test(.enabled(if: isBuildServer && isRoot, "only a build server runs tests beside containers, which takes root"))
func `a build server runs tests in a mount namespace of their own`() throws {
  let namespaces = try ["self", "\(getppid())"].map { process in
    try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(process)/ns/mnt")
  }
  #expect(namespaces[0] != namespaces[1])
}

/// A disk that fails for a moment, followed by a power cut. On ext4, a block whose write failed once can read back as
/// zeros although later writes to it succeeded. XFS and btrfs are tested too if the kernel supports them.
@Suite(
  .enabled(if: FailingDisk.missing == nil, Comment(rawValue: FailingDisk.missing ?? "")), .serialized,
  .tags(.trial))
struct FailingDiskTests {
  /// The acknowledged commits of one round, by number.
  private struct Round {
    var acknowledged: [Int] = []
    /// The number of commits that were acknowledged after the failure.
    var later = 0
  }

  /// Commits, makes the disk fail for a while, and continues until enough commits have succeeded on the working disk.
  ///
  /// - Parameters:
  ///   - mended: runs once the disk works again.
  ///   - commit: commits a change with a number, and returns whether the commit was acknowledged.
  private func round(
    on disk: FailingDisk, _ generator: inout SeededGenerator, mended: () throws -> Void = {},
    _ commit: (Int) throws -> Bool
  ) throws -> Round {
    var round = Round()
    var number = 0
    func next() throws -> Bool {
      number += 1
      guard try commit(number) else { return false }
      round.acknowledged.append(number)
      return true
    }
    for _ in 0..<Int.random(in: 5...40, using: &generator) where try !next() {
      throw Failure("refused without a fault")
    }
    disk.fails = true
    let end = Date(timeIntervalSinceNow: Double.random(in: 0.05...0.6, using: &generator))
    while Date() < end { if try !next() { usleep(5_000) } }
    disk.fails = false
    try mended()
    let deadline = Date(timeIntervalSinceNow: 10)
    let before = round.acknowledged.count
    // A file system that has failed permanently refuses every write, so no acknowledged commit can be lost.
    while round.acknowledged.count < before + 30, Date() < deadline { if try !next() { usleep(20_000) } }
    round.later = round.acknowledged.count - before
    return round
  }

  /// The action between the failed writes and the rewrite of the store. A restart of the daemon is no cure: the page
  /// cache still holds data that the disk lacks.
  private enum Between: CaseIterable { case nothing, kill, stop, twoStarts, remount, reboot, cutAtStart }

  @Test func `row 3: changes acknowledged after failed writes survive a power cut`() throws {
    var generator = SeededGenerator(3)
    var (later, lost) = (0, 0)
    let rounds = Trial.rounds(10, long: 500)
    let systems = FailingDisk.FileSystem.available
    for number in 0..<rounds {
      let daemon = try DaemonUnderTest(inMemory: true)
      let disk = try FailingDisk(systems[number % systems.count], in: daemon.folder, mountedOn: daemon.state)
      defer { disk.remove() }
      try daemon.start()
      let device = try daemon.uuid("get device")
      var client = try daemon.client()
      let between = Between.allCases[number % Between.allCases.count]
      let pause = UInt32.random(in: 0..<60_000, using: &generator)
      let mended = { () throws in
        switch between {
        case .nothing: return
        case .kill: daemon.end(with: SIGKILL)
        case .stop: daemon.end()
        case .twoStarts:
          daemon.end(with: SIGKILL)
          try daemon.start()
          daemon.end(with: SIGKILL)
        case .remount:
          daemon.end(with: SIGKILL)
          try disk.remount()
        case .reboot:
          daemon.end()
          try disk.remount()
        case .cutAtStart:
          daemon.end(with: SIGKILL)
          try daemon.launch()
          usleep(pause)
          try disk.cut { daemon.end(with: SIGKILL) }
          try disk.mountAgain()
        }
        try daemon.start()
        client = try daemon.client()
      }
      let round = try round(on: disk, &generator, mended: mended) { number in
        try client.ask("item put service=s account=\(number) data=c2VjcmV0").last?.hasPrefix("OK") == true
      }
      if between == .cutAtStart {
        daemon.end(with: SIGKILL)
      } else {
        try disk.cut { daemon.end(with: SIGKILL) }
        try disk.mountAgain()
      }
      try daemon.start()
      #expect(try daemon.uuid("get device") == device)
      let reader = try daemon.client()
      for number in round.acknowledged
      where try !reader.ask("item read service=s account=\(number)").contains(where: {
        $0.hasPrefix("OK data=c2VjcmV0")
      }) {
        lost += 1
      }
      daemon.end(with: SIGKILL)
      later += round.later
    }
    try Trial("power cut after failed writes").report(
      tried: rounds, lost: lost, "\(later) commits acknowledged after the failure")
    #expect(lost == 0)
    #expect(later > 0)
  }

  /// Control test of the disk itself: without a file system, all data is on the disk after a successful sync.
  @Test func `synced data is on the test disk, even between failed writes`() throws {
    var generator = SeededGenerator(4)
    let folder = try TemporaryFolder()
    let place = URL(filePath: folder.path)
    let disk = try FailingDisk(nil, in: place, mountedOn: place.appending(path: "mounted"))
    defer { disk.remove() }
    let device = unsafe open(disk.path, O_RDWR)
    try #require(device >= 0)
    defer { close(device) }
    var (synced, refused, wrong) = (0, 0, 0)
    for number in 0..<Trial.rounds(60, long: 2_000) {
      disk.fails = number % 3 == 2
      // A write of up to 256 KiB spans several messages of at most 32 KiB.
      let count = 4_096 * Int.random(in: 1...64, using: &generator)
      let place = 4_096 * Int.random(in: 0..<8_192, using: &generator)
      let bytes = Data((0..<count).map { UInt8(truncatingIfNeeded: $0 / 4_096 + number) })
      let written = unsafe bytes.withUnsafeBytes { unsafe pwrite(device, $0.baseAddress, count, off_t(place)) }
      try #require(written == count)
      guard fsync(device) == 0 else {
        refused += 1
        continue
      }
      synced += 1
      if try disk.stored(at: place, count: count) != bytes { wrong += 1 }
    }
    try Trial("writes to a disk that fails").report(tried: synced + refused, lost: wrong, "\(refused) refused")
    #expect(wrong == 0)
    #expect(synced > 0 && refused > 0)
  }

  @Test func `row 3: plain SQLite, which goes on after a failure, loses acknowledged commits on the same disk`()
    throws
  {
    var generator = SeededGenerator(3)
    let folder = FileManager.default.temporaryDirectory.appending(path: "plain-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(at: folder) }
    let mounted = folder.appending(path: "mounted")
    let disk = try FailingDisk(in: folder, mountedOn: mounted)
    defer { disk.remove() }
    let database = mounted.appending(path: "database").path
    let (writer, input, output) = (Process(), Pipe(), Pipe())
    writer.executableURL = URL(filePath: "/usr/bin/python3")
    let script = Document.root.appending(path: "Tests/EndToEndTests/Fixtures/plain-writer.py")
    writer.arguments = [script.path, database]
    writer.standardInput = input
    writer.standardOutput = output
    try writer.runUnmasked()
    let round = try round(on: disk, &generator) { number in
      try input.fileHandleForWriting.write(contentsOf: Data("\(number)\n".utf8))
      return output.fileHandleForReading.availableData == Data("ok\n".utf8)
    }
    try disk.cut {
      kill(writer.processIdentifier, SIGKILL)
      writer.waitUntilExit()
    }
    try disk.mountAgain()
    let found = try run(["sqlite3", database, "SELECT number FROM row"])
    let numbers = Set(found.output.split(separator: "\n").compactMap { Int($0) })
    let lost = round.acknowledged.count { !numbers.contains($0) }
    #expect(round.later > 0)
    #expect(lost > 0, "\(round.acknowledged.count) acknowledged, \(round.later) behind the failure, none lost")
  }
}
