import IdentityCore
import LinuxSystem
import TestSupport
import Testing

@testable import IdentityServer

/// The file that an orderly stop leaves to the next daemon.
struct SealedHandoverTests {
  private func records(_ count: Int) -> [HandoverRecord] {
    var generator = SeededGenerator(11)
    return (0..<count).map { number in
      var record = HandoverRecord.random(&generator)
      record.inode = UInt64(number)
      return record
    }
  }

  /// Returns the data read from a sealed file with these bytes.
  private func sealed(_ bytes: [UInt8]) throws -> HandoverMemory.Legacy {
    let file = try MemoryFile(named: "identityd-test")
    try file.write(bytes)
    try file.seal()
    return try HandoverMemory.Legacy(sealed: file)
  }

  @Test func `records are read back from a sealed file`() throws {
    for count in [0, 1, 500] {
      let records = records(count)
      let file = try HandoverMemory.seal(records, lastUUID: UUID(high: 5, low: 6))
      let isSealed = file.isSealed
      #expect(isSealed)
      let legacy = try HandoverMemory.Legacy(sealed: file)
      #expect(legacy.lastUUID == UUID(high: 5, low: 6))
      #expect(legacy.records.count == count)
      for record in records { #expect(legacy.records[record.inode] == record) }
    }
  }

  @Test func `a record of any size is written`() throws {
    var record = records(1)[0]
    record.output = [UInt8](repeating: 7, count: 3_000_000)
    let file = try HandoverMemory.seal([record], lastUUID: .zero)
    #expect(try HandoverMemory.Legacy(sealed: file).records == [0: record])
  }

  @Test func `a file that is not sealed is refused`() throws {
    let good = try HandoverMemory.seal(records(2), lastUUID: .zero)
    let file = try MemoryFile(named: "identityd-test")
    try file.write(try good.readWhole(limit: .max))
    #expect(throws: SystemError.self) { try HandoverMemory.Legacy(sealed: file) }
    try file.seal()
    #expect(try HandoverMemory.Legacy(sealed: file).records.count == 2)
  }

  @Test(arguments: [0, 8]) func `a file of another format is ignored`(place: Int) throws {
    var bytes = try HandoverMemory.seal(records(2), lastUUID: UUID(high: 5, low: 6)).readWhole(limit: .max)
    bytes[place] ^= 1
    let legacy = try sealed(bytes)
    #expect(legacy.records.isEmpty)
    #expect(legacy.lastUUID == UUID.zero)
  }

  @Test func `from a truncated file only the whole records are read`() throws {
    let records = records(4)
    let bytes = try HandoverMemory.seal(records, lastUUID: UUID(high: 5, low: 6)).readWhole(limit: .max)
    var end = 5 * 8
    var ends: [Int] = []
    for record in records {
      end += 8 + record.bytes.count
      ends.append(end)
    }
    #expect(end == bytes.count)
    for count in stride(from: 0, through: bytes.count, by: 3) {
      let legacy = try sealed(Array(bytes[..<count]))
      let whole = ends.count { $0 <= count }
      #expect(legacy.records.keys.sorted() == (0..<whole).map(UInt64.init))
      for (inode, record) in legacy.records { #expect(record == records[Int(inode)]) }
    }
  }

  @Test func `an impossible number of records is ignored`() throws {
    var bytes = try HandoverMemory.seal(records(2), lastUUID: .zero).readWhole(limit: .max)
    for place in 32..<40 { bytes[place] = 0xff }
    #expect(try sealed(bytes).records.count == 2)
  }
}
