import Testing

@testable import ClientSecrets

struct BackupHeaderTests {
  private static let salt = "000102030405060708090a0b0c0d0eff"
  private static let good = "identityd-backup 1 argon2id ops=3 memory=268435456 salt=\(salt)"

  @Test func `a header line is parsed and written back unchanged`() throws {
    let header = try BackupHeader(parsing: Array(Self.good.utf8))
    #expect(header.operations == 3)
    #expect(header.memory == 268_435_456)
    #expect(header.salt == Array(0...14) + [255])
    #expect(header.line == Array("\(Self.good)\n".utf8))
    #expect(header.line.count <= BackupHeader.longestLine)
  }

  @Test func `a header of format 2 also names its store, and nobody else can tell which one`() throws {
    let line = "identityd-backup 2 argon2id ops=3 memory=268435456 salt=\(Self.salt) store=\(Self.salt)"
    let header = try BackupHeader(parsing: Array(line.utf8))
    #expect(header.line == Array("\(line)\n".utf8))
    #expect(header.namesStore && !header.isOf(Array("store".utf8)))
    let made = try BackupHeader(of: Array("store".utf8))
    #expect(made.namesStore && made.isOf(Array("store".utf8)) && !made.isOf(Array("other".utf8)))
    #expect(made.line.count <= BackupHeader.longestLine)
    #expect(try BackupHeader(parsing: made.line.dropLast()) == made)
    // Two backups of one store have no mark in common.
    #expect(try made.mark != BackupHeader(of: Array("store".utf8)).mark)
    let old = try BackupHeader()
    #expect(!old.namesStore && !old.isOf(Array("store".utf8)))
  }

  @Test func `a new header has a random salt and libsodium's moderate cost`() throws {
    let one = try BackupHeader()
    #expect(one.operations == 3)
    #expect(one.memory == 268_435_456)
    #expect(one.salt.count == 16)
    #expect(try one.salt != BackupHeader().salt)
    #expect(try BackupHeader(parsing: one.line.dropLast()) == one)
  }

  @Test(arguments: [(1, 8_192), (10, 1 << 30)])
  func `costs within the bounds are accepted`(operations: Int, memory: Int) throws {
    let header = BackupHeader(operations: operations, memory: memory, salt: [UInt8](repeating: 7, count: 16))
    #expect(try BackupHeader(parsing: header.line.dropLast()) == header)
  }

  @Test(arguments: [
    ("ops=11", "memory=8192"), ("ops=4294967295", "memory=8192"), ("ops=9223372036854775807", "memory=8192"),
    ("ops=1", "memory=1073741825"), ("ops=1", "memory=9223372036854775807"),
  ])
  func `a cost above the bounds is refused`(operations: String, memory: String) {
    let line = "identityd-backup 1 argon2id \(operations) \(memory) salt=\(Self.salt)"
    #expect(throws: BackupHeader.Fault.tooCostly) { try BackupHeader(parsing: Array(line.utf8)) }
  }

  @Test(arguments: [
    ("identityd-backup 3 argon2id ops=3", "3"), ("identityd-backup 10", "10"), ("identityd-backup 3 ", "3"),
    ("identityd-backup 999999999 x=\u{e9}", "999999999"),
  ])
  func `a later version is reported, whatever follows`(line: String, version: String) {
    #expect(throws: BackupHeader.Fault.later(version: version)) { try BackupHeader(parsing: Array(line.utf8)) }
    #expect("\(BackupHeader.Fault.later(version: version))".contains("made by a later identityd"))
  }

  @Test(arguments: [
    "", " ", "\u{0}", "PK\u{3}\u{4}", "SQLite format 3\u{0}", "identityd-backup", "identityd-backup ",
    "identityd-backup 0", "identityd-backup 01", "identityd-backup +2", "identityd-backup -1", "identityd-backup x",
    "identityd-backup 2x", "identityd-backup 1000000000", "identityd-backup  2", " \(good)", "\(good) ", "\(good)\r",
    "\(good)\n", "\(good) x=1", "identityd-backup 1", "identityd-backup 1 argon2id",
    "Identityd-backup 1 argon2id ops=3 memory=268435456 salt=\(salt)",
    "identityd-backup 1 argon2i ops=3 memory=268435456 salt=\(salt)",
    "identityd-backup 1 argon2id memory=268435456 ops=3 salt=\(salt)",
    "identityd-backup 1 argon2id ops=03 memory=268435456 salt=\(salt)",
    "identityd-backup 1 argon2id ops=+3 memory=268435456 salt=\(salt)",
    "identityd-backup 1 argon2id ops=3 memory= salt=\(salt)", "identityd-backup 1 argon2id ops=3 memory=x salt=\(salt)",
    "identityd-backup 1 argon2id ops=0 memory=8192 salt=\(salt)",
    "identityd-backup 1 argon2id ops=1 memory=8191 salt=\(salt)",
    "identityd-backup 1 argon2id ops=9223372036854775808 memory=8192 salt=\(salt)",
    "identityd-backup 1 argon2id ops=3 memory=8192 salt=\(salt)00",
    "identityd-backup 1 argon2id ops=3 memory=8192 salt=\(salt.dropLast())",
    "identityd-backup 1 argon2id ops=3 memory=8192 salt=\(salt.uppercased())",
    "identityd-backup 1 argon2id ops=3 memory=8192 salt=+\(salt.dropFirst())",
    "identityd-backup 1 argon2id ops=3 memory=8192 salt=g\(salt.dropFirst())",
    "identityd-backup 1 argon2id  ops=3 memory=8192 salt=\(salt)",
    "identityd-backup 1 argon2id ops=3 memory=8192 salt=\(salt) store=\(salt)",
    "identityd-backup 2 argon2id ops=3 memory=8192 salt=\(salt)",
    "identityd-backup 2 argon2id ops=3 memory=8192 salt=\(salt) store=",
    "identityd-backup 2 argon2id ops=3 memory=8192 salt=\(salt) store=\(salt)00",
    "identityd-backup 2 argon2id ops=3 memory=8192 salt=\(salt) store=\(salt.uppercased())",
    "identityd-backup 2 argon2id ops=3 memory=8192 store=\(salt) salt=\(salt)",
  ])
  func `any other line is not a backup`(line: String) {
    #expect(throws: BackupHeader.Fault.notABackup) { try BackupHeader(parsing: Array(line.utf8)) }
  }

  @Test func `bytes that are not UTF-8 are not a backup`() {
    #expect(throws: BackupHeader.Fault.notABackup) { try BackupHeader(parsing: [0xff, 0xc3, 0x20, 0x31]) }
    let broken = Array("identityd-backup 1 argon2id ops=3 memory=8192 salt=".utf8) + [UInt8](repeating: 0xff, count: 32)
    #expect(throws: BackupHeader.Fault.notABackup) { try BackupHeader(parsing: broken) }
  }
}
