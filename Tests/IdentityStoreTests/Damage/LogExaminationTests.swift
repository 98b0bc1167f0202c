import IdentityCore
import IdentityStore
import TestSupport
import Testing

/// The log after a power cut, without a witness of the last commit. A truncated commit must be told apart from damage.
@Suite(.tags(.trial)) struct LogExaminationTests {
  /// The lengths of a page in a new store, and in one of an earlier version.
  private static let pageLengths = [2_048, 4_096]

  /// A store after a power cut, whose last commits are only in the log.
  private struct Cut {
    let files: [String: [UInt8]]
    /// The registry after each commit.
    let registries: [Registry]
    /// The length of the log after each commit, in bytes.
    let ends: [Int]
    /// The length of a frame, in bytes.
    let frame: Int

    var log: [UInt8] { files["identityd.db-wal"] ?? [] }
    /// The offset of the first frame of the last commit.
    var lastCommit: Int { ends[ends.count - 2] }

    init(_ workspace: Workspace, pageLength: Int) throws {
      try workspace.withStore { _, _ in }
      try workspace.usePages(of: pageLength)
      frame = 24 + pageLength
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
        // Writes to this file since the start did not reach the disk.
        return try workspace.files().merging(["witness.latest": latest]) { $1 }
      }
      self.registries = registries
      self.ends = ends
    }
  }

  /// Starts with these files and returns the number of missing commits. Nil if the store is damaged and serves nothing.
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

  @Test(arguments: pageLengths)
  func `row 4: a flipped bit after a power cut takes back the last commit at most`(pageLength: Int) throws {
    let (workspace, other) = (try Workspace(inMemory: true), try Workspace(inMemory: true))
    let cut = try Cut(workspace, pageLength: pageLength)
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
      // Damage in the frames of the last commit looks like a truncated commit.
      #expect(missing == nil || missing == 0 || missing == 1 && place >= cut.lastCommit, "a bit at \(place)")
    }
    try Trial("bits flipped in a log after a power cut").report(tried: rounds, lost: 0)
    #expect(outcomes["damaged", default: 0] > rounds / 2, "\(outcomes)")
  }

  @Test(arguments: pageLengths)
  func `row 4: a page with the content of another one takes back the last two commits at most`(pageLength: Int) throws {
    let (workspace, other) = (try Workspace(inMemory: true), try Workspace(inMemory: true))
    let cut = try Cut(workspace, pageLength: pageLength)
    let pages = cut.log.count / 4_096
    var outcomes: [Int?: Int] = [:]
    for page in 0..<pages {
      var changed = cut.files
      let source = (page + pages / 2) % pages * 4_096
      changed["identityd.db-wal"]?.replaceSubrange(
        page * 4_096..<(page + 1) * 4_096, with: cut.log[source..<source + 4_096])
      let missing = try missing(changed, cut, in: other, "page \(page)")
      outcomes[missing, default: 0] += 1
      #expect(missing == nil || missing ?? 0 <= 2, "page \(page)")
    }
    // The page with the header of the frame that ends the commit before the last one.
    #expect(outcomes[2, default: 0] > 0 && outcomes[nil, default: 0] > pages / 2, "\(outcomes)")
  }

  @Test(arguments: pageLengths)
  func `a commit that was cut off is no damage, whichever parts of it reached the disk`(pageLength: Int) throws {
    let (workspace, other) = (try Workspace(inMemory: true), try Workspace(inMemory: true))
    let cut = try Cut(workspace, pageLength: pageLength)
    let frames = (cut.log.count - cut.lastCommit) / cut.frame
    try #require(frames > 2 && frames < 16)
    // Each frame is present or reads as zeros. The file may also end within the commit.
    for lost in 1..<(1 << frames) {
      var changed = cut.files
      for frame in 0..<frames where lost >> frame & 1 == 1 {
        let start = cut.lastCommit + frame * cut.frame
        changed["identityd.db-wal"]?.replaceSubrange(
          start..<start + cut.frame, with: [UInt8](repeating: 0, count: cut.frame))
      }
      #expect(try missing(changed, cut, in: other, "frames \(lost)") == 1, "frames \(lost)")
    }
    for length in stride(from: cut.lastCommit, to: cut.log.count, by: 512) {
      let changed = cut.files.merging(["identityd.db-wal": Array(cut.log.prefix(length))]) { $1 }
      #expect(try missing(changed, cut, in: other, "\(length) bytes") == 1, "\(length) bytes")
    }
  }

  @Test(arguments: pageLengths)
  func `a damaged header, and frames of zeros before others, are damage`(pageLength: Int) throws {
    let (workspace, other) = (try Workspace(inMemory: true), try Workspace(inMemory: true))
    let cut = try Cut(workspace, pageLength: pageLength)
    for place in 0..<32 {
      var changed = cut.files
      changed["identityd.db-wal"]?[place] ^= 0x10
      #expect(try missing(changed, cut, in: other, "header byte \(place)") == nil, "header byte \(place)")
    }
    for start in stride(from: 32, to: cut.ends[cut.ends.count - 3], by: cut.frame) {
      var changed = cut.files
      changed["identityd.db-wal"]?.replaceSubrange(
        start..<start + cut.frame, with: [UInt8](repeating: 0, count: cut.frame))
      #expect(try missing(changed, cut, in: other, "a frame at \(start)") == nil, "a frame at \(start)")
    }
  }

  @Test func `a synced witness reveals a lost log`() throws {
    let (workspace, other) = (try Workspace(inMemory: true), try Workspace(inMemory: true))
    var registry = Registry()
    let files = try workspace.withStore { store, _ in
      for number in 0..<130 {
        try store.mustCommit(registry.recorded([.accountSet(Text("account \(number)"))]))
      }
      return try workspace.files()
    }
    for slot in 0..<2 {
      // The power failed while one slot was being written. The other slot is whole.
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
