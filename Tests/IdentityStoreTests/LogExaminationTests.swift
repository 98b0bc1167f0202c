import IdentityCore
import IdentityStore
import TestSupport
import Testing

/// A log after a power cut, where no witness knows the last commit: one that was cut off is told from one that was damaged.
@Suite struct LogExaminationTests {
  private static let frame = 24 + 4_096

  /// A store whose last commits stand in the log alone, as a power cut leaves it.
  private struct Cut {
    let files: [String: [UInt8]]
    /// What it held after each commit.
    let registries: [Registry]
    /// How many bytes the log had after each commit.
    let ends: [Int]

    var log: [UInt8] { files["identityd.db-wal"] ?? [] }
    /// Where the frames of the last commit begin.
    var lastCommit: Int { ends[ends.count - 2] }

    init(_ workspace: Workspace) throws {
      var registry = Registry()
      var registries: [Registry] = []
      var ends: [Int] = []
      files = try workspace.withStore { store, _ in
        let latest = try workspace.read("witness.latest")
        for batch in sample(apps: 2) + life {
          try store.mustCommit(registry.recorded(batch))
          registries.append(registry)
          ends.append(try workspace.read("identityd.db-wal").count)
        }
        // What was written to it since the start did not reach the disk.
        return try workspace.files().merging(["witness.latest": latest]) { $1 }
      }
      self.registries = registries
      self.ends = ends
    }
  }

  /// Starts with these files, and tells how many commits are missing; nil where the store is damaged and serves nothing.
  private func missing(_ files: [String: [UInt8]], _ cut: Cut, in workspace: Workspace, _ what: String) throws -> Int? {
    try workspace.restore(files)
    let content = try workspace.found()
    guard content.condition == .writable else {
      #expect(content.condition.damage != nil && content.registry.isNothing, "\(what): \(content.condition)")
      return nil
    }
    let place = try #require(cut.registries.lastIndex(of: content.registry), "\(what): something else is served")
    return cut.registries.count - 1 - place
  }

  @Test func `row 4: a bit that turned behind a power cut takes back the last commit at most`() throws {
    let (workspace, other) = (try Workspace(inMemory: true), try Workspace(inMemory: true))
    let cut = try Cut(workspace)
    #expect(try missing(cut.files, cut, in: other, "untouched") == 0)
    var random = SeededGenerator(20)
    var outcomes: [String: Int] = [:]
    let rounds = Trial.rounds(300, long: 5_000)
    for _ in 0..<rounds {
      let place = Int.random(in: cut.log.indices, using: &random)
      var changed = cut.files
      changed["identityd.db-wal"]?[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      let missing = try missing(changed, cut, in: other, "a bit at \(place)")
      outcomes[missing.map { "\($0)" } ?? "damaged", default: 0] += 1
      // The frames of the last commit look as if it had been cut off.
      #expect(missing == nil || missing == 0 || missing == 1 && place >= cut.lastCommit, "a bit at \(place)")
    }
    try Trial("bits flipped in a log after a power cut").report(tried: rounds, lost: 0)
    #expect(outcomes["damaged", default: 0] > rounds / 2, "\(outcomes)")
  }

  @Test func `a commit that was cut off, whatever of it reached the disk, is no damage`() throws {
    let (workspace, other) = (try Workspace(inMemory: true), try Workspace(inMemory: true))
    let cut = try Cut(workspace)
    let frames = (cut.log.count - cut.lastCommit) / Self.frame
    try #require(frames > 2 && frames < 16)
    // Each frame is there, or reads as zeros; and the file may end behind any of them.
    for lost in 1..<(1 << frames) {
      var changed = cut.files
      for frame in 0..<frames where lost >> frame & 1 == 1 {
        let start = cut.lastCommit + frame * Self.frame
        changed["identityd.db-wal"]?.replaceSubrange(
          start..<start + Self.frame, with: [UInt8](repeating: 0, count: Self.frame))
      }
      #expect(try missing(changed, cut, in: other, "frames \(lost)") == 1, "frames \(lost)")
    }
    for length in stride(from: cut.lastCommit, to: cut.log.count, by: 512) {
      let changed = cut.files.merging(["identityd.db-wal": Array(cut.log.prefix(length))]) { $1 }
      #expect(try missing(changed, cut, in: other, "\(length) bytes") == 1, "\(length) bytes")
    }
  }

  @Test func `a header that is damaged, and frames of zeros before others, are damage`() throws {
    let (workspace, other) = (try Workspace(inMemory: true), try Workspace(inMemory: true))
    let cut = try Cut(workspace)
    for place in 0..<32 {
      var changed = cut.files
      changed["identityd.db-wal"]?[place] ^= 0x10
      #expect(try missing(changed, cut, in: other, "header byte \(place)") == nil, "header byte \(place)")
    }
    for start in stride(from: 32, to: cut.ends[cut.ends.count - 3], by: Self.frame) {
      var changed = cut.files
      changed["identityd.db-wal"]?.replaceSubrange(
        start..<start + Self.frame, with: [UInt8](repeating: 0, count: Self.frame))
      #expect(try missing(changed, cut, in: other, "a frame at \(start)") == nil, "a frame at \(start)")
    }
  }

  @Test func `a witness that was synced notices a log that is gone`() throws {
    let (workspace, other) = (try Workspace(inMemory: true), try Workspace(inMemory: true))
    var registry = Registry()
    let files = try workspace.withStore { store, _ in
      for number in 0..<130 {
        try store.mustCommit(registry.recorded([.accountSet(Text("account \(number)"))]))
      }
      return try workspace.files()
    }
    for slot in 0..<2 {
      // One slot was being written when the power failed; the other is whole.
      var changed = files
      changed["identityd.db-wal"] = []
      changed["witness.latest"]?.replaceSubrange(
        slot * 4_096..<slot * 4_096 + 64, with: [UInt8](repeating: 0, count: 64))
      try other.restore(changed)
      let content = try other.found()
      #expect(content.condition.damage?.contains("it is an older copy") == true, "\(content.condition)")
    }
  }
}
