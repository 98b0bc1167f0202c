import IdentityCore
import IdentityStore
import TestSupport
import Testing

import struct Foundation.Data

/// A sealed store belongs to a golden image. Each start with it must be a first start.
struct SealingTests {
  private static let elsewhere = MachineMarks(machineID: Array("another machine-id".utf8))

  /// Returns the files of a store that was sealed on ``machine``, with its last changes still in the
  /// log or written back.
  private func sealed(inLog: Bool) throws -> [String: [UInt8]] {
    let workspace = try Workspace()
    try workspace.commit([[deviceMade]] + life, withEvents: true)
    return try workspace.withStore { store, content in
      var registry = content.registry
      var record = try #require(registry.machine)
      record.fingerprint = content.fingerprint
      try store.mustCommit(registry.recorded([.machineRecorded(record)]))
      for number in 1...3 { try store.mustCommit(registry.recorded([store.storing(Known(Int64(number)))])) }
      try store.mustCommit(registry.recorded(sealing(registry)))
      if !inLog { try store.mustClose() }
      return try workspace.files()
    }
  }

  /// Expects that a start creates a new store, in which nothing of the old one is left.
  private func expectUnsealed(
    _ files: [String: [UInt8]], on machine: MachineMarks = machine, isHere: Bool = true, notices: Int = 2,
    aside: [String] = [], _ what: String
  ) throws {
    let workspace = try Workspace()
    try workspace.restore(files)
    try workspace.withStore(at: later(100), identity: uuid(500), machine: machine) { store, content in
      #expect(content.condition == .writable, "\(what)")
      let expected =
        [.unsealed] + aside.map { .setAside(path: workspace.path($0)) }
        + [.created(path: workspace.path("identityd.db"))] as [StoreNotice]
      #expect(content.notices == expected.suffix(notices + aside.count), "\(what)")
      #expect(content.isSealedHere == isHere, "\(what)")
      #expect(content.events == [], "\(what)")
      #expect(
        content.registry.history.count == 0 && content.registry.devices.count == 0 && !content.registry.isSealed,
        "\(what)")
      #expect(content.registry.account == nil && content.registry.items == Registry().items, "\(what)")
      #expect(Array(content.registry.versions.all) == [] && Array(content.registry.tokens.all) == [], "\(what)")
      #expect(content.registry.itemFault == nil && store.keySource == .file, "\(what)")
      // The new store has the spent machine-id from its beginning, so that an interruption cannot lose it.
      let spent = isHere ? content.fingerprint.machine : nil
      #expect(content.registry.machine?.spentMachine == spent, "\(what)")
      #expect((content.registry.machine == nil) == !isHere, "\(what)")
      try store.mustCommit([deviceMade])
    }
    #expect(try workspace.names() == (storeNames + aside).sorted(), "\(what)")
    for key in ["store.key", "master.key"] { #expect(try workspace.read(key) != files[key], "\(what): \(key)") }
    for (name, bytes) in try workspace.files() {
      for text in ["\(uuid(3))", "\(uuid(32))", "com.example", "somebody@example.com", "user-2", "token 2.1", "24.04"] {
        #expect(Data(bytes).range(of: Data(text.utf8)) == nil, "\(what): \(text) in \(name)")
      }
    }
    #expect(try workspace.sql("SELECT id FROM store") == "\(uuid(500))\n", "\(what)")
    let next = try workspace.found(machine: machine)
    #expect(next.condition == .writable, "\(what)")
    #expect(next.registry[.device] != nil, "\(what)")
    #expect(!next.isSealedHere, "\(what)")
    #expect(next.notices == [], "\(what)")
  }

  @Test(arguments: [false, true])
  func `a start with a sealed store is a first start with a new key`(inLog: Bool) throws {
    let files = try sealed(inLog: inLog)
    try expectUnsealed(files, "here")
    try expectUnsealed(files, on: Self.elsewhere, isHere: false, "elsewhere")
    try expectUnsealed(files, on: MachineMarks(), isHere: false, "unknown")
    try expectUnsealed(
      files, on: MachineMarks(machineID: machine.machineID, hardware: [9]), "the hardware says nothing of it")
  }

  @Test func `files that were set aside are deleted with a sealed store`() throws {
    var files = try sealed(inLog: true)
    let copy = files["identityd.db"]
    for name in [
      "identityd.db.damaged-5", "identityd.db.damaged-5-wal", "identityd.db.rewritten.damaged-5", "identityd.db-shm",
      "identityd.db-journal", "identityd.db.draft", "store.key.damaged-5", "master.key.damaged-5",
      "master.key.next", "master.key.next.new", "master.key.new", "witness.damaged-5", "witness.new",
    ] { files[name] = copy }
    try expectUnsealed(files, "copies")
    files["witness"] = Array("no witness".utf8)
    try expectUnsealed(files, "a garbled witness")
  }

  /// The points at which the removal of a sealed store, or the first start after it, can be interrupted.
  enum Cut: String, CaseIterable {
    case marked, copiesRemoved, masterKeyRemoved, oneWitness, otherWitness, noWitness, databaseRemoved, logRemoved
    case keyReplaced, halfAKey, masterKeyMade, draft, storeThere, witnessThere
  }

  @Test(arguments: Cut.allCases, [false, true])
  func `a cut at any moment ends in a first start or the sealed store again`(cut: Cut, inLog: Bool) throws {
    let old = try sealed(inLog: inLog)
    var files = old
    func remove(_ names: String...) { for name in names { files[name] = nil } }
    files["sealed-here"] = []
    if cut == .marked { return try expectUnsealed(files, "\(cut)") }
    if cut != .copiesRemoved { remove("master.key") }
    switch cut {
    case .marked, .copiesRemoved, .masterKeyRemoved: break
    case .oneWitness: remove("witness")
    case .otherWitness: remove("witness.latest")
    default: remove("witness", "witness.latest")
    }
    if [.copiesRemoved, .masterKeyRemoved, .oneWitness, .otherWitness, .noWitness].contains(cut) {
      try expectUnsealed(files, "\(cut)")
      // While the sealed store exists, the machine that made the mark does not matter.
      try expectUnsealed(files, on: Self.elsewhere, isHere: false, "\(cut), elsewhere")
      remove("sealed-here")
      return try expectUnsealed(files, "\(cut), not marked")
    }
    remove("identityd.db")
    if cut == .databaseRemoved { return try expectUnsealed(files, notices: 1, "\(cut)") }
    remove("identityd.db-wal")
    if cut == .logRemoved {
      try expectUnsealed(files, notices: 1, "\(cut)")
      remove("sealed-here")
      return try expectUnsealed(files, isHere: false, notices: 1, "\(cut), sealed elsewhere")
    }
    let next = try Workspace()
    try next.restore(files)
    _ = try next.found()
    let made = try next.files()
    files["store.key"] = made["store.key"]
    if ![.keyReplaced, .halfAKey].contains(cut) { files["master.key"] = made["master.key"] }
    switch cut {
    case .halfAKey: files["store.key.new"] = Array(made["store.key", default: []].prefix(9))
    case .draft: files["identityd.db.draft"] = made["identityd.db"]
    case .storeThere, .witnessThere: files["identityd.db"] = made["identityd.db"]
    default: break
    }
    guard [.storeThere, .witnessThere].contains(cut) else {
      // The purpose of a master key without a store is unknown.
      let aside = files["master.key"] == nil ? [] : ["master.key.damaged-\(later(100).milliseconds)"]
      return try expectUnsealed(files, notices: 1, aside: aside, "\(cut)")
    }
    if cut == .witnessThere { files["witness"] = made["witness"] }
    // The new store is whole, so the mark is no longer needed and is removed.
    try next.restore(files)
    let content = try next.found()
    #expect(content.condition == .writable)
    #expect(content.registry.machine?.spentMachine == content.fingerprint.machine)
    #expect(try next.names() == storeNames)
  }

  @Test func `a sealed store that fails verification is damaged and kept`() throws {
    let workspace = try Workspace()
    try workspace.restore(try sealed(inLog: false))
    try workspace.sql("UPDATE identifier SET author = 'x'")
    let before = try workspace.files()
    let content = try workspace.found()
    #expect(content.condition.damage != nil)
    #expect(content.registry.isSealed)
    for (name, bytes) in before { #expect(try workspace.read(name) == bytes, "\(name)") }
  }

  @Test func `a seal without a valid proof is refused`() throws {
    let workspace = try Workspace()
    try workspace.commit([[deviceMade]] + life)
    try workspace.sql("UPDATE setting SET sealed = 1")
    #expect(try workspace.found().condition.damage?.contains("a row of setting") == true)
    #expect(try workspace.sql("SELECT count(*) FROM identifier") != "0\n")
  }

  @Test func `a log without its database is not read into the new one`() throws {
    let workspace = try Workspace()
    let files = try sealed(inLog: true)
    try #require(files["identityd.db-wal"]?.isEmpty == false)
    try workspace.restore(["identityd.db-wal": files["identityd.db-wal", default: []]])
    let content = try workspace.found()
    #expect(content.condition == .writable)
    #expect(content.registry == Registry())
  }
}

/// Values derived from the store's key.
struct DerivationTests {
  @Test func `a derived identifier depends on the store, the kind and every part`() throws {
    let workspace = try Workspace()
    func derive(_ kind: String, _ parts: [[UInt8]]) throws -> UUID {
      try workspace.withStore { _, content in
        guard let derivation = content.derivation else { throw Failure("none") }
        return derivation.identifier(kind, parts)
      }
    }
    let value = try derive("key", [[1], [2, 3]])
    #expect(try derive("key", [[1], [2, 3]]) == value)
    #expect(value == value.stamped(version: 4))
    let others = [
      try derive("session", [[1], [2, 3]]), try derive("key", [[1, 2], [3]]), try derive("key", [[1], [2], [3]]),
      try derive("key", [[1, 2, 3]]), try derive("key", [[], [1], [2, 3]]), try derive("key", [[1], [2, 3], []]),
      try derive("key", []), try derive("", [Array("key".utf8), [1], [2, 3]]),
    ]
    #expect(Set(others + [value]).count == others.count + 1)
    let other = try Workspace()
    try other.withStore { _, content in #expect(content.derivation?.identifier("key", [[1], [2, 3]]) != value) }
  }

  @Test func `a derivation outlives the store that made it`() throws {
    let workspace = try Workspace()
    let derivation = try workspace.withStore { _, content in content.derivation }
    let value = try #require(derivation).identifier("key", [])
    #expect(try workspace.withStore { _, content in content.derivation?.identifier("key", []) } == value)
  }

  @Test func `without the store's key nothing is derived and no machine is recognised`() throws {
    let workspace = try Workspace()
    try workspace.commit(sample(apps: 1))
    try workspace.remove("store.key")
    try workspace.withStore { store, content in
      #expect(content.derivation == nil)
      #expect(content.fingerprint == MachineFingerprint(machine: nil, hardware: nil))
    }
  }

  @Test func `the marks of a machine are hashed by kind and by store`() throws {
    let workspace = try Workspace()
    let same = MachineMarks(machineID: [7], hardware: [7])
    let found = try workspace.found(machine: same).fingerprint
    let (marked, hardware) = (try #require(found.machine), try #require(found.hardware))
    #expect(marked != hardware)
    for text in [marked, hardware] {
      #expect(text.bytes.count == 64)
      #expect(text.bytes.allSatisfy { Array("0123456789abcdef".utf8).contains($0) })
    }
    #expect(try workspace.found(machine: same).fingerprint == found)
    #expect(try workspace.found(machine: MachineMarks(machineID: [7])).fingerprint.hardware == nil)
    #expect(try workspace.found(machine: MachineMarks(hardware: [7])).fingerprint.machine == nil)
    #expect(try workspace.found(machine: MachineMarks(machineID: [8])).fingerprint.machine != marked)
    #expect(try Workspace().found(machine: same).fingerprint != found)
    let raw = Array("a machine-id".utf8)
    _ = try workspace.found()
    for (name, bytes) in try workspace.files() { #expect(!bytes.contains(raw), "\(name)") }
  }
}
