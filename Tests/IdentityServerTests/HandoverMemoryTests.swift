import Glibc
import IdentityCore
import LinuxSystem
import TestSupport
import Testing

@testable import IdentityServer

struct HandoverMemoryTests {
  private let memory: HandoverMemory
  init() throws { memory = try HandoverMemory() }

  /// Returns the data that the next daemon reads. Like the next daemon, it uses a separate descriptor.
  private func legacy() throws -> HandoverMemory.Legacy {
    try HandoverMemory.legacy(of: try MemoryFile(adopting: Descriptor(adopting: dup(memory.descriptor))))
  }

  /// Returns a random record of the connection with this inode number.
  private func record(_ inode: UInt64, input: Int = 0, place: Int64? = nil) -> HandoverRecord {
    var generator = SeededGenerator(inode)
    var record = HandoverRecord.random(&generator)
    record.inode = inode
    record.input = [UInt8](repeating: UInt8(truncatingIfNeeded: inode), count: input)
    record.subscription = place.map {
      Subscription(starts: [Int64](repeating: 0, count: Topic.allCases.count), position: $0, lag: nil)
    }
    return record
  }

  /// Returns the memory that the file occupies, in bytes.
  private func used() throws -> Int {
    var status = stat()
    try #require(unsafe fstat(memory.descriptor, &status) == 0)
    return Int(status.st_blocks) * 512
  }

  // MARK: Connections

  @Test func `the next daemon reads the records of this one, even after its end`() throws {
    #expect(try legacy().records.isEmpty)
    let records = (1...20).map { record(UInt64($0), input: $0 * 100, place: $0 == 7 ? nil : Int64($0)) }
    // Arbitrary slots, including the last one.
    let slots = (0..<19).map { $0 * 13 } + [Bound.rememberedConnections - 1]
    var next: HandoverMemory? = try HandoverMemory()
    let descriptor = dup(try #require(next).descriptor)
    for (record, slot) in zip(records, slots) { #expect(next?.keep(record, in: slot) == true) }
    next = nil
    let legacy = try HandoverMemory.legacy(of: try MemoryFile(adopting: Descriptor(adopting: descriptor)))
    #expect(legacy.records.count == 20)
    for record in records { #expect(legacy.records[record.inode] == record) }
  }

  @Test func `a busy connection is not taken over, and one that is at rest again is`() throws {
    #expect(memory.keep(record(1), in: 3))
    #expect(memory.keep(record(2), in: 4))
    memory.set(.busy, 3)
    #expect(try legacy().records.keys.sorted() == [2])
    memory.set(.atRest, 3)
    #expect(try legacy().records[1] == record(1))
  }

  @Test func `the record of a closed connection is removed and its slot is free`() throws {
    #expect(memory.keep(record(1, input: 10_000), in: 3))
    memory.forget(3)
    memory.forget(8)
    #expect(try legacy().records.isEmpty)
    #expect(memory.keep(record(2), in: 3))
    #expect(try legacy().records == [2: record(2)])
  }

  @Test func `the place of a subscription is the one that was set last`() throws {
    #expect(memory.keep(record(1, place: 100), in: 0))
    #expect(memory.keep(record(2), in: 1))
    memory.set(position: 150, 0)
    memory.set(position: 150, 1)
    var legacy = try legacy()
    #expect(legacy.records[1] == record(1, place: 150))
    #expect(legacy.records[2] == record(2))
    #expect(memory.keep(record(1, place: 160), in: 0))
    legacy = try self.legacy()
    #expect(legacy.records[1]?.subscription?.position == 160)
  }

  @Test func `a subscription that went back has the place that it went back to`() throws {
    // After a second `subscribe since=` the topics start where they did before, so only the place
    // differs in the record.
    #expect(memory.keep(record(1, place: 1_000), in: 0))
    memory.set(position: 210, 0)
    #expect(try legacy().records[1]?.subscription?.position == 210)
  }

  @Test func `slots beyond the last are refused and do not affect other records`() throws {
    let last = Bound.rememberedConnections - 1
    #expect(memory.keep(record(1), in: last))
    for slot in [last + 1, last + 2, 1_000_000] {
      #expect(!memory.keep(record(2), in: slot))
      memory.set(.atRest, slot)
      memory.set(.busy, slot)
      memory.set(position: 5, slot)
      memory.forget(slot)
    }
    #expect(try legacy().records == [1: record(1)])
  }

  // MARK: Sizes

  @Test func `records that grow and shrink are read back correctly`() throws {
    var generator = SeededGenerator(5)
    #expect(memory.keep(record(2), in: 6))
    #expect(memory.keep(record(3), in: 8))
    for _ in 0..<60 {
      let length = Int.random(in: 0...(generator.once(in: 4) ? 900_000 : 9_000), using: &generator)
      let next = record(1, input: length, place: generator.once(in: 2) ? 9 : nil)
      #expect(memory.keep(next, in: 7))
      let legacy = try legacy()
      #expect(legacy.records[1] == next)
      #expect(legacy.records[2] == record(2) && legacy.records[3] == record(3))
    }
  }

  @Test func `the largest record that fits is kept, and one that is a byte longer is not`() throws {
    let rest = record(1).bytes.count
    let stretch = 1_048_576
    #expect(memory.keep(record(2), in: 1))
    #expect(memory.keep(record(1, input: stretch - rest), in: 0))
    #expect(try legacy().records[1]?.input.count == stretch - rest)
    #expect(!memory.keep(record(1, input: stretch - rest + 1), in: 0))
    #expect(try legacy().records[2] == record(2))
  }

  @Test func `a record that does not fit leaves no older record in its slot`() throws {
    #expect(memory.keep(record(1), in: 0))
    #expect(!memory.keep(record(1, input: 2_000_000), in: 0))
    #expect(try legacy().records.isEmpty)
    #expect(memory.keep(record(1), in: 0))
    #expect(try legacy().records == [1: record(1)])
  }

  @Test func `memory is released when records shrink or go`() throws {
    #expect(memory.keep(record(1), in: 0))
    let before = try used()
    #expect(memory.keep(record(2, input: 800_000), in: 1))
    #expect(try used() > before + 700_000)
    #expect(memory.keep(record(2), in: 1))
    // At most a page of its own remains.
    #expect(try used() <= before + 4_096)
    #expect(memory.keep(record(2, input: 800_000), in: 1))
    memory.forget(1)
    #expect(try used() <= before + 4_096)
  }

  @Test func `memory is released when records shrink little by little`() throws {
    #expect(memory.keep(record(1), in: 0))
    let before = try used()
    for length in stride(from: 300_000, through: 0, by: -3_000) {
      #expect(memory.keep(record(1, input: length), in: 0))
    }
    let more = try used() - before
    #expect(more <= 0, "\(more) bytes")
  }

  // MARK: UUIDs and other formats

  @Test func `the last UUID is the one that was set last`() throws {
    #expect(try legacy().lastUUID == UUID.zero)
    memory.set(lastUUID: UUID(high: 1, low: 2))
    memory.set(lastUUID: UUID(high: 3, low: .max))
    #expect(try legacy().lastUUID == UUID(high: 3, low: .max))
  }

  @Test(arguments: [0, 8]) func `a file of another format is ignored`(word: Int) throws {
    memory.set(lastUUID: UUID(high: 1, low: 2))
    #expect(memory.keep(record(1), in: 0))
    let file = try MemoryFile(adopting: Descriptor(adopting: dup(memory.descriptor)))
    let good = try file.read(count: 8, at: word)
    try file.write([9, 9, 9], at: word)
    #expect(try legacy().records.isEmpty)
    #expect(try legacy().lastUUID == UUID.zero)
    try file.write(good, at: word)
    #expect(try legacy().records.count == 1)
  }

  @Test func `a file that is too short is ignored, and so are records that are cut off`() throws {
    let file = try MemoryFile(named: "identityd-test")
    #expect(try HandoverMemory.legacy(of: file).records.isEmpty)
    #expect(memory.keep(record(1), in: 0))
    #expect(memory.keep(record(2), in: 1))
    let good = try MemoryFile(adopting: Descriptor(adopting: dup(memory.descriptor)))
    try file.write(try good.read(count: 3_000_000, at: 0))
    #expect(try HandoverMemory.legacy(of: file).records.keys.sorted() == [1, 2])
    try file.resize(to: 2 * 1_048_576 + 30)
    #expect(try HandoverMemory.legacy(of: file).records.keys.sorted() == [1])
    try file.resize(to: 1_000)
    #expect(try HandoverMemory.legacy(of: file).records.isEmpty)
  }

  @Test func `a damaged record is left out, and the others are read`() throws {
    for slot in 0..<3 { #expect(memory.keep(record(UInt64(slot)), in: slot)) }
    let file = try MemoryFile(adopting: Descriptor(adopting: dup(memory.descriptor)))
    // Overwrites the length of the app's name.
    try file.write([255, 255, 255, 255, 255, 255, 255, 255], at: 2 * 1_048_576 + 8)
    #expect(try legacy().records.keys.sorted() == [0, 2])
  }
}
