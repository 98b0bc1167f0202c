import IdentityCore
import IdentityWire

@testable import IdentityStore

/// Restores a backup. A damaged one must be refused. One with valid records but strange contents is restored as far as
/// the rules allow, stored, and must read back.
///
/// The first byte of the input chooses, from its lowest bit: whether to edit the encrypted bytes (0, ``FileEdit``) or the
/// records (1, ``RecordEdit``), whether the store has contents, whether the machine is another, and whether to adopt
/// the device.
final class BackupTarget: FuzzTarget {
  private let scratch: Scratch
  private let sample: SampleLife
  private let key: [UInt8]
  private let original: [UInt8]
  private let records: [BackupRecord]
  /// The files of an empty store, and of one with the sample.
  private let stores: [[String: [UInt8]]]

  init() throws {
    scratch = try Scratch()
    let empty = try scratch.withStore { [scratch] store, _ in
      if let complaint = store.close() { throw Finding(complaint) }
      return try scratch.files()
    }
    var sample = SampleLife()
    let key = Array("0123456789abcdef0123456789abcdef".utf8)
    original = try scratch.withStore { store, content in
      try sample.live(in: &store, from: content.registry)
      let writer = try store.beginBackup(of: sample.registry, key: Self.encrypted(key, store), at: Scratch.start)
      var pieces: [[UInt8]]?
      while pieces == nil { pieces = try writer.writeRecord(from: store) }
      let bytes = (pieces ?? []).flatMap(\.self)
      if let complaint = store.close() { throw Finding(complaint) }
      return bytes
    }
    stores = [empty, try scratch.files()]
    records = try BackupRecord.all(original, Self.cipherKey(key))
    self.sample = sample
    self.key = key
  }

  func run(_ input: [UInt8]) throws {
    guard let choice = input.first else { return }
    var bytes = original
    if choice & 1 == 0 {
      for edit in FileEdit.all(input.dropFirst()).prefix(8) where !bytes.isEmpty { bytes = edit.applied(to: bytes) }
    } else {
      var records = records
      for edit in RecordEdit.all(input.dropFirst()).prefix(24) { edit.apply(to: &records) }
      bytes = try BackupRecord.encrypted(records, Self.cipherKey(key))
    }
    try scratch.restore(stores[Int(choice >> 1 & 1)])
    let machine = choice & 4 == 0 ? Scratch.machine : MachineMarks(machineID: [1], hardware: [2])
    let before = choice & 2 == 0 ? Registry() : sample.registry
    do throws(Refusal) {
      let after = try restored(bytes, on: machine, before, adoptsDevice: choice & 8 != 0, isWhole: choice & 1 == 1)
      do {
        try scratch.withStore(on: machine) { _, content in
          try require(content.condition == .writable, "it opens as \(content.condition)")
          try require(content.registry.isSame(as: after), "another registry is read back")
        }
      } catch {
        throw .broken("\(error)")
      }
    } catch {
      guard case .conflict = error else { throw Finding("\(error)") }
      try WireCheck.refusal(error, to: [])
    }
  }

  /// Restores a backup as the writer does.
  private func restored(
    _ bytes: [UInt8], on machine: MachineMarks, _ before: Registry, adoptsDevice: Bool, isWhole: Bool
  ) throws(Refusal) -> Registry {
    do {
      return try scratch.withStore(on: machine) { store, content in
        try require(content.registry.isSame(as: before), "the store is not what was put there")
        var upload = try BackupUpload(key: Self.encrypted(key, store))
        var text: [UInt8] = []
        Base64.append(bytes[...], to: &text)
        let count = try upload.add(Text(trusted: text))
        try require(count == bytes.count, "\(count) bytes of \(bytes.count) came")
        let reader = try store.beginReading(upload)
        var backup: Backup?
        while backup == nil { backup = try reader.readRecord() }
        try require(isWhole || bytes == original, "a backup that was changed is taken")
        return try bring(
          try require(backup, "nothing was read"), into: content.registry, of: &store, adoptsDevice: adoptsDevice)
      }
    } catch let refusal as Refusal {
      throw refusal
    } catch {
      throw .broken("\(error)")
    }
  }

  private func bring(_ backup: Backup, into before: Registry, of store: inout Store, adoptsDevice: Bool) throws
    -> Registry
  {
    var registry = before
    let decision = try registry.restoration(of: backup, adoptsDevice: adoptsDevice, Self.context)
    var follower = before.lastEvent == 0 ? Follower() : sample.follower
    var recorded: [RecordedChange] = []
    for change in decision.changes {
      let next = registry.record(change, at: Scratch.start)
      registry.apply(next)
      if let event = next.event { try follower.take(event) }
      recorded.append(next)
    }
    try follower.check(registry)
    try WireCheck.reply(decision.reply)
    if let refusal = store.commit(recorded, events: recorded.events) {
      throw Finding("it cannot be stored: \(refusal)")
    }
    return registry
  }

  private static var context: Context {
    let surroundings = Surroundings(
      now: { Scratch.start }, session: { (_) throws(Refusal) in throw .unavailable("there is no session") })
    return Context(
      peer: Peer(userID: 0, groupID: 0, processID: 1, isAdmin: true), in: surroundings,
      random: { () throws(Refusal) in SampleLife.uuid(500) },
      machine: { (_) throws(Refusal) in SampleLife.uuid(501) }, digest: { $0 },
      fingerprint: { Text("#\($0.bytes.count)") })
  }

  private static func encrypted(_ key: [UInt8], _ store: borrowing Store) throws -> SealedSecret {
    var text: [UInt8] = []
    Base64.append(key[...], to: &text)
    return try store.makeSecretMemory().encrypt { span in
      for index in text.indices { span[index] = text[index] }
      return text.count
    }
  }

  private static func cipherKey(_ key: [UInt8]) throws(Finding) -> CipherKey {
    var key = key
    return try require(CipherKey(consuming: &key), "no memory for the key")
  }
}

/// A decrypted record of a backup.
struct BackupRecord {
  var kind: BackupFormat.Kind
  var values: [Value]
  var secret: [UInt8]?

  /// Returns the records of a backup, except the last one, which only holds their number.
  static func all(_ bytes: [UInt8], _ key: CipherKey) throws(Finding) -> [BackupRecord] {
    var records: [BackupRecord] = []
    var place = 0
    while place < bytes.count {
      let length = bytes[place..<(place + 4)].reversed().reduce(0) { $0 << 8 | Int($1) }
      let range = (place + 4)..<(place + 4 + length)
      let associated = BackupFormat.associated(
        index: Int64(records.count), isLast: range.upperBound == bytes.count, behind: bytes[..<place])
      let message = try require(
        key.decrypt(Array(bytes[range]), with: associated), "record \(records.count) does not open")
      let read = unsafe message.withUnsafeBufferPointer { unsafe BackupFormat.read($0) }
      let (kind, values, secret) = try require(read, "record \(records.count) cannot be read")
      records.append(BackupRecord(kind: kind, values: values, secret: secret.map { Array(message[$0]) }))
      place = range.upperBound
    }
    return records.dropLast()
  }

  /// Encrypts the records as a backup, with a last record that holds their number.
  static func encrypted(_ records: [BackupRecord], _ key: CipherKey) throws(Finding) -> [UInt8] {
    var bytes: [UInt8] = []
    let end = BackupRecord(kind: .end, values: [.integer(Int64(records.count))])
    for (place, record) in (records + [end]).enumerated() {
      var message = Authenticator.message(record.values, behind: record.kind.rawValue)
      if let secret = record.secret {
        message.append(BackupFormat.secretForm)
        message.append(number: UInt64(secret.count))
        message += secret
      }
      let associated = BackupFormat.associated(
        index: Int64(place), isLast: place == records.count, behind: bytes[...])
      let ciphertext = key.encrypt(message, with: associated)
      for shift in stride(from: 0, to: 32, by: 8) { bytes.append(UInt8(truncatingIfNeeded: ciphertext.count >> shift)) }
      bytes += ciphertext
    }
    return bytes
  }
}

/// One edit of a backup's records: the action, the record, the value in it, and one more byte.
struct RecordEdit {
  private let action: UInt8
  private let record: UInt8
  private let value: UInt8
  private let extra: UInt8

  /// Parses edits of four bytes each.
  static func all(_ bytes: ArraySlice<UInt8>) -> [RecordEdit] {
    var edits: [RecordEdit] = []
    var rest = bytes
    while rest.count >= 4 {
      let edit = Array(rest.prefix(4))
      rest = rest.dropFirst(4)
      edits.append(RecordEdit(action: edit[0], record: edit[1], value: edit[2], extra: edit[3]))
    }
    return edits
  }

  func apply(to records: inout [BackupRecord]) {
    guard !records.isEmpty else { return }
    let place = Int(record) % records.count
    switch action % 10 {
    case 0: return records.append(records[place])
    case 1: records.remove(at: place)
    case 2: records.swapAt(place, Int(extra) % records.count)
    case 3:
      records[place].secret =
        records[place].secret == nil ? [extra] : extra == 0 ? nil : [UInt8](repeating: 7, count: Int(extra) * 256)
    default: change(&records[place], of: records)
    }
  }

  private func change(_ record: inout BackupRecord, of records: [BackupRecord]) {
    guard !record.values.isEmpty else { return }
    let index = Int(value) % record.values.count
    switch action % 10 {
    case 4: record.values[index] = .null
    case 5: record.values[index] = .integer(Self.numbers[Int(extra) % Self.numbers.count])
    case 6: record.values[index] = .text(Self.texts[Int(extra) % Self.texts.count])
    case 7: record.values.remove(at: index)
    case 8: record.values.append(.integer(Int64(extra)))
    default:
      let other = records[Int(extra) % records.count].values
      if index < other.count { record.values[index] = other[index] }
    }
  }

  private static let numbers: [Int64] = [0, 1, 2, 3, -1, .max, .min, 1 << 32]

  private static let texts = [
    "", "device", "vendor", "installation", "machine", "random", "migrated", "restored", "renewed", "uninstalled",
    "shared", "app", "numeric", "linux", "org.a", "org.b", "org.v", "user:1000", "user:1001", "unit:x.service@1000",
    "installed", "upgraded", "downgraded", "updated", "unchanged", "1.0", "2.0", "1.0.0", "\(SampleLife.uuid(1))",
    "\(SampleLife.uuid(2))", "\(SampleLife.uuid(4))", "\(SampleLife.uuid(6))", "\(SampleLife.uuid(77))",
    "00000000-0000-0000-0000-000000000000", "2026-11-21T08:39:12.345Z", "0000-01-01T00:00:00.000Z",
    "9999-12-31T23:59:59.999Z", "somebody", "\u{1}\n", "a=b \"c\"", String(repeating: "x", count: 3_000),
  ].map { Array($0.utf8) }
}
