import Foundation
import IdentityCore
import IdentityStore
import Testing

/// Missing, empty and foreign files of a store. Each fault is reported, and nothing is invented in place of lost data.
struct DamageTests {
  private func filled(apps: Int = 3) throws -> Workspace {
    let workspace = try Workspace()
    try workspace.commit(sample(apps: apps))
    return workspace
  }

  /// Expects a start that serves nothing and accepts no change, and a second start with the same result.
  private func expectDamaged(_ workspace: Workspace, _ words: String...) throws {
    for round in 0..<2 {
      try workspace.withStore(at: Timestamp(milliseconds: start.milliseconds + Int64(round))) { store, content in
        let reason = try #require(content.condition.damage, "\(content)")
        if round == 0 { for word in words { #expect(reason.contains(word), "\(reason)") } }
        #expect(content.registry.isNothing)
        #expect(!content.notices.contains { if case .created = $0 { true } else { false } })
        #expect(store.condition == content.condition)
        #expect(store.commit([deviceMade]) == content.condition)
        let healed = store.heal()
        #expect(healed == nil)
        let complaint = store.close()
        #expect(complaint == nil)
      }
    }
  }

  @Test func `row 13: an empty database without a witness is not taken for a first start`() throws {
    let workspace = try filled()
    try workspace.write("identityd.db", [])
    try workspace.remove("witness")
    try expectDamaged(workspace, "the database is empty")
  }

  @Test func `row 13: an empty database is damage and is set aside`() throws {
    let workspace = try filled()
    try workspace.write("identityd.db", [])
    let before = try workspace.files()
    let content = try workspace.found()
    #expect(content.condition.damage?.contains("the database is empty") == true)
    #expect(content.asideNames == ["identityd.db.damaged-\(start.milliseconds)"])
    #expect(try workspace.read("witness") == before["witness"])
    #expect(try workspace.read("store.key") == before["store.key"])
    #expect(!workspace.exists("identityd.db"))
    try expectDamaged(workspace)
  }

  @Test(arguments: [false, true]) func `row 14: a deleted database is damage at this start and the next`(withLog: Bool)
    throws
  {
    let workspace = try filled()
    try workspace.remove("identityd.db")
    if withLog { try workspace.remove("identityd.db-wal") }
    let before = try workspace.files()
    try expectDamaged(workspace, "the database is gone", "witness")
    #expect(try workspace.files() == before, "nothing was made or changed")
  }

  @Test func `garbage in place of the database is set aside unchanged, with its log`() throws {
    let workspace = try filled()
    let garbage = [UInt8](repeating: 0x55, count: 20_000)
    try workspace.write("identityd.db", garbage)
    try workspace.write("identityd.db-wal", [1, 2, 3])
    let content = try workspace.found()
    let aside = try #require(content.asideNames.first)
    #expect(try workspace.read(aside) == garbage)
    #expect(try workspace.read(aside + "-wal") == [1, 2, 3])
    #expect(content.condition.damage?.contains(aside) == true)
    try expectDamaged(workspace)
  }

  @Test func `garbage without a witness is damage at the next start too`() throws {
    let workspace = try filled()
    try workspace.write("identityd.db", [UInt8](repeating: 0x55, count: 20_000))
    try workspace.remove("witness")
    try expectDamaged(workspace, "not a database")
  }

  @Test func `a good database put back in place of a damaged one is served again`() throws {
    let workspace = try filled()
    let good = try workspace.read("identityd.db")
    try workspace.write("identityd.db", [])
    #expect(try workspace.found().condition.damage != nil)
    try workspace.write("identityd.db", good)
    let content = try workspace.found()
    #expect(content.registry == Registry(applying: sample(apps: 3)))
    #expect(content.condition == .writable)
  }

  @Test func `row 12: a foreign schema is damage and is set aside`() throws {
    let workspace = try filled()
    try workspace.sql(
      """
      PRAGMA writable_schema = ON;
      UPDATE sqlite_schema SET sql = replace(sql, 'lines', 'linez') WHERE name = 'event_batch';
      """)
    try expectDamaged(workspace, "SQL logic error", "set aside")
  }

  @Test func `a store with several faults names the first and counts the others`() throws {
    let workspace = try filled()
    try workspace.sql("UPDATE app SET vendor = 'x'")
    #expect(try workspace.found().condition.damage?.hasSuffix("is not authentic, and 2 more") == true)
  }

  @Test func `the database of another store is damage, even if all its rows are intact`() throws {
    let workspace = try filled()
    let other = try filled(apps: 9)
    for name in ["identityd.db", "identityd.db-wal"] { try workspace.write(name, try other.read(name)) }
    try expectDamaged(workspace, "not authentic")
  }

  @Test func `row 16: an older copy is damage, is not served and is left unchanged`() throws {
    let workspace = try filled(apps: 3)
    let old = try workspace.read("identityd.db")
    try workspace.commit([installed(3), installed(4)])
    try workspace.write("identityd.db", old)
    let before = try workspace.files()
    try expectDamaged(workspace, "older copy", "revision 4", "revision 6", "witness")
    #expect(try workspace.files() == before)
    // The remedy that the message names.
    try workspace.remove("witness")
    try workspace.remove("witness.latest")
    let content = try workspace.found()
    #expect(content.condition == .writable)
    #expect(content.registry == Registry(applying: sample(apps: 3)))
  }

  @Test func `row 16: after a kill an older copy is noticed if the witness has a later revision`() throws {
    let workspace = try Workspace(inMemory: true)
    let other = try Workspace(inMemory: true)
    try workspace.withStore { store, _ in
      try store.mustCommit([deviceMade])
      let old = try workspace.files()
      for number in 0..<1_100 { try store.mustCommit(installed(number)) }
      var mixed = old
      mixed["witness"] = try workspace.read("witness")
      try other.restore(mixed)
    }
    #expect(try other.found().condition.damage?.contains("revision 1024 was reached") == true)
  }
}

struct WitnessTests {
  private func filled() throws -> Workspace {
    let workspace = try Workspace()
    try workspace.commit(sample(apps: 3))
    return workspace
  }

  private func expectServed(_ workspace: Workspace) throws {
    let content = try workspace.found()
    #expect(content.registry == Registry(applying: sample(apps: 3)))
    #expect(content.condition == .writable)
    #expect(content.notices == [])
  }

  @Test func `a deleted witness is renewed from the verified database`() throws {
    let workspace = try filled()
    let witness = try workspace.read("witness")
    try workspace.remove("witness")
    let content = try workspace.found()
    #expect(content.registry == Registry(applying: sample(apps: 3)))
    #expect(content.condition == .writable)
    #expect(content.notices == [.witnessRenewed(reason: "it was missing")])
    #expect(try workspace.read("witness") == witness)
    #expect(try workspace.mode("witness") == 0o600)
    try expectServed(workspace)
  }

  /// Garbled witnesses: a name, and the function that garbles a witness.
  static let garbled: [(String, @Sendable ([UInt8]) -> [UInt8])] = [
    ("empty", { _ in [] }),
    ("garbage", { _ in Array("no witness at all\n".utf8) }),
    (
      "a wrong revision",
      { Array(String(decoding: $0, as: UTF8.self).replacing(" 4 ", with: " 9 ").utf8) }
    ),
    ("cut off", { Array($0.dropLast(2)) }),
    ("with an additional line", { $0 + Array("\n".utf8) }),
    ("binary", { _ in [UInt8](repeating: 0xff, count: 200) }),
    ("longer than any witness", { _ in [UInt8](repeating: 0x41, count: 5_000) }),
  ]

  @Test(arguments: garbled.map(\.0)) func `a damaged witness is kept aside and renewed`(how: String) throws {
    let workspace = try filled()
    let witness = try workspace.read("witness")
    let change = try #require(Self.garbled.first { $0.0 == how })
    let broken = change.1(witness)
    try #require(broken != witness)
    try workspace.write("witness", broken)
    let content = try workspace.found()
    #expect(content.registry == Registry(applying: sample(apps: 3)))
    #expect(content.condition == .writable)
    #expect(content.witnessRenewal == "it was not authentic")
    let aside = "witness.damaged-\(start.milliseconds)"
    #expect(content.asideNames == [aside])
    #expect(try workspace.read(aside) == broken)
    #expect(try workspace.read("witness") == witness)
    try expectServed(workspace)
  }

  @Test func `every flipped bit of a witness is noticed`() throws {
    let workspace = try Workspace(inMemory: true)
    try workspace.commit(sample(apps: 3))
    let files = try workspace.files()
    let witness = try #require(files["witness"])
    for bit in 0..<(8 * witness.count) {
      var flipped = witness
      flipped[bit / 8] ^= 1 << UInt8(bit % 8)
      try workspace.restore(files)
      try workspace.write("witness", flipped)
      let content = try workspace.found()
      #expect(content.witnessRenewal == "it was not authentic", "bit \(bit)")
      #expect(content.condition == .writable, "bit \(bit)")
    }
  }

  @Test func `the witness of another store is not accepted`() throws {
    let workspace = try filled()
    let other = try filled()
    try workspace.write("witness", try other.read("witness"))
    #expect(try workspace.found().witnessRenewal == "it was not authentic")
    try expectServed(workspace)
  }

  @Test func `a witness that lags behind after a kill is no fault`() throws {
    let workspace = try filled()
    let witness = try workspace.read("witness")
    try workspace.withStore { store, _ in
      for number in 10..<20 { try store.mustCommit(installed(number)) }
    }
    try #require(try workspace.read("witness") == witness)
    let content = try workspace.found()
    #expect(content.registry.apps.count == 13)
    #expect(content.notices == [])
    #expect(try workspace.read("witness") != witness, "a start brings it up to date")
  }
}

struct KeyTests {
  static let broken: [(String, @Sendable ([UInt8]) -> [UInt8]?)] = [
    ("missing", { _ in nil }),
    ("empty", { _ in [] }),
    ("short", { Array($0.dropLast(3)) }),
    ("with an invalid digit", { Array("g".utf8) + $0.dropFirst() }),
    ("without its line feed", { Array($0.dropLast()) }),
    ("of another store", { key in Array("0123456789abcdef".utf8) + key.dropFirst(16) }),
    ("longer than any key", { _ in [UInt8](repeating: 0x41, count: 5_000) }),
  ]

  @Test(arguments: broken.map(\.0))
  func `without its key a store is damaged, serves nothing and is not overwritten`(how: String) throws {
    let workspace = try Workspace()
    try workspace.commit(sample(apps: 3))
    let key = try workspace.read("store.key")
    let change = try #require(Self.broken.first { $0.0 == how })
    if let bytes = change.1(key) { try workspace.write("store.key", bytes) } else { try workspace.remove("store.key") }
    let before = try workspace.files()
    for _ in 0..<2 {
      try workspace.withStore { store, content in
        #expect(content.condition.damage != nil)
        #expect(content.registry.isNothing)
        #expect(store.commit([deviceMade]) == content.condition)
        let healed = store.heal()
        #expect(healed == nil)
        _ = store.close()
      }
      let after = try workspace.files()
      for (name, bytes) in before { #expect(after[name] == bytes, "\(name)") }
    }
    // With the original key everything is served again.
    try workspace.write("store.key", key)
    let content = try workspace.found()
    #expect(content.condition == .writable)
    #expect(content.registry == Registry(applying: sample(apps: 3)))
  }

  @Test(arguments: [0, 10, 65, 255, 5_000])
  func `a foreign file in place of the key is kept aside at a first start`(length: Int) throws {
    let workspace = try Workspace()
    try workspace.makeState()
    let stranger = [UInt8](repeating: UInt8(ascii: "z"), count: length)
    try workspace.write("store.key", stranger)
    try workspace.commit(sample(apps: 1))
    #expect(try workspace.read("store.key.damaged-\(start.milliseconds)") == stranger)
    #expect(try workspace.read("store.key").count == 114)
    #expect(try workspace.mode("store.key") == 0o600)
    #expect(try workspace.found().condition == .writable)
  }

  @Test func `a valid key at a first start is replaced, because it may be a sealed store's`() throws {
    let workspace = try Workspace()
    let other = try Workspace()
    try other.commit(sample(apps: 1))
    let key = try other.read("store.key")
    try workspace.makeState()
    try workspace.write("store.key", key)
    try workspace.commit(sample(apps: 1))
    #expect(try workspace.read("store.key").count == 114)
    for (name, bytes) in try workspace.files() { #expect(bytes != key, "\(name)") }
    #expect(try workspace.found().condition == .writable)
  }

  @Test func `row 19: a symbolic link in place of the key is not followed`() throws {
    let workspace = try Workspace()
    try workspace.commit(sample(apps: 1))
    try workspace.rename("store.key", to: "real.key")
    try FileManager.default.createSymbolicLink(atPath: workspace.path("store.key"), withDestinationPath: "real.key")
    guard case .unusable = try workspace.failure() else {
      Issue.record("followed")
      return
    }
  }
}
