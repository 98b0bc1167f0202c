import IdentityCore

// Conversion between values and the columns of a row, without its revision and its proof. A row of the store is decoded
// only after its proof was verified. The initializers still return nil for a row that this program would not write.

extension App: ReadRow {
  /// Returns the columns of a row of `app`. Spaces join the access groups and rights: no name of one contains a space.
  func columns(id: Text) -> [Value] {
    [.text(id.bytes)] + (manifest?.columns ?? [Value](repeating: .null, count: 6)) + [.text("\(installed)")]
  }

  init?(reading row: inout RowReader) {
    row.skip(1)
    var ahead = row
    // Without a manifest all columns of the manifest are NULL.
    guard ahead.skipNulls(6) else {
      guard let manifest = Manifest(reading: &row), let installed = row.time() else { return nil }
      self.init(installed: installed, manifest: manifest)
      return
    }
    guard let installed = ahead.time() else { return nil }
    self.init(installed: installed)
  }
}

extension Manifest {
  /// The prefix of `unit` for a container. The name of a service has no slash.
  private static let containerMark = Array("container/".utf8)

  /// The column `unit`: the name of the service, or `container/NAME`.
  private var home: Text? {
    get { container.map { Text(trusted: Self.containerMark + $0.bytes) } ?? unit }
    set {
      guard let newValue, newValue.bytes.starts(with: Self.containerMark) else { return unit = newValue }
      container = Text(trusted: Array(newValue.bytes.dropFirst(Self.containerMark.count)))
    }
  }

  /// The column `user`: names of users, joined by spaces, which no name contains, or `*` for everyone.
  private var admitted: Text? {
    get {
      switch users {
      case .unnamed: nil
      case .named(let names): Text(trusted: Array(names.map(\.bytes).joined(separator: [UInt8(ascii: " ")])))
      case .everyone: "*"
      }
    }
    set {
      users =
        switch newValue {
        case nil: .unnamed
        case "*"?: .everyone
        case let names?: .named(names.bytes.split(separator: UInt8(ascii: " ")).map { Text(trusted: Array($0)) })
        }
    }
  }

  /// The prefix of a right in `access_groups`. The name of an access group has no slash.
  private static let rightMark = Array("right/".utf8)

  /// The column `access_groups`: the names of the groups, and `right/NAME` for each right, joined by spaces.
  private var grants: [UInt8] {
    let names = Right.allCases.filter(rights.contains).map { Self.rightMark + $0.rawValue.utf8 }
    return Array((accessGroups.map(\.bytes) + names).joined(separator: [UInt8(ascii: " ")]))
  }

  /// Takes over the words of the column `access_groups`. Returns false if a right is unknown.
  private mutating func grant(_ words: [ArraySlice<UInt8>]) -> Bool {
    for word in words {
      if word.starts(with: Self.rightMark) {
        let name = String(decoding: word.dropFirst(Self.rightMark.count), as: UTF8.self)
        guard let right = Right(rawValue: name) else { return false }
        rights.insert(right)
      } else {
        accessGroups.append(Text(trusted: Array(word)))
      }
    }
    return true
  }

  fileprivate var columns: [Value] {
    [
      .text(vendor.bytes), Value(home), Value(admitted), .text(grants), .text(deviceBinding.rawValue),
      .text(versionOrder.rawValue),
    ]
  }

  fileprivate init?(reading row: inout RowReader) {
    guard let vendor = row.text() else { return nil }
    self.init(vendor: vendor)
    home = row.text()
    admitted = row.text()
    guard let grants = row.text(), grant(grants.bytes.split(separator: UInt8(ascii: " "))),
      let binding = row.word(DeviceBinding.self), let order = row.word(VersionOrder.self)
    else { return nil }
    deviceBinding = binding
    versionOrder = order
  }
}

extension AppUse {
  /// Represents the daemon itself in the column of an app's name: no app has an empty name.
  static let daemon: Text = ""

  /// Returns the columns of a row of `app_use`.
  func columns(of id: Text) -> [Value] { [.text(id.bytes), .integer(day), .integer(date.number)] }

  init?(columns: [Value]) {
    guard let day = columns[1].number, let date = columns[2].number else { return nil }
    self.init(day: day, date: Day(number: date))
  }
}

extension Identifier: ReadRow {
  /// Returns the columns of a row of `identifier`.
  ///
  /// - Parameter number: the position in the history, from 1 on.
  func columns(number: Int64) -> [Value] {
    [
      .integer(number), .text(scope.level.rawValue), Value(scope.app), Value(scope.vendor), .text("\(value)"),
      .text(origin.rawValue), .text("\(created)"), .text(cause.rawValue), Value(author), Value(end?.time),
      end.map { .text($0.cause.rawValue) } ?? .null,
    ]
  }

  init?(reading row: inout RowReader) {
    var decoder = IdentifierDecoder()
    guard let decoded = decoder.identifier(in: &row) else { return nil }
    self = decoded.identifier
  }
}

/// Decodes rows of `identifier` one after the other.
struct IdentifierDecoder {
  private var level = Repeated<Level>()
  private var origin = Repeated<Origin>()
  private var cause = Repeated<Cause>()
  private var endCause = Repeated<Cause>()
  /// The app or vendor, which often is the author too.
  private var name = RepeatedText()

  /// Decodes a row; nil if this program would not write such a row.
  mutating func identifier(in row: inout RowReader) -> NumberedIdentifier? {
    guard let number = row.number(), let level = row.word(&level),
      let scope = Scope(level, app: row.text(&name), vendor: row.text(&name)), let value = row.uuid(),
      let origin = row.word(&origin), let created = row.time(), let cause = row.word(&cause)
    else { return nil }
    let author = row.text(&name)
    var ahead = row
    var end: Identifier.End?
    if !ahead.skipNulls(2) {
      guard let time = row.time(), let cause = row.word(&endCause) else { return nil }
      end = Identifier.End(time: time, cause: cause)
    }
    return NumberedIdentifier(
      number: number,
      identifier: Identifier(
        scope: scope, value: value, created: created, origin: origin, cause: cause, author: author, end: end))
  }
}

extension ListedDevice {
  /// Returns the columns of a row of `device`.
  ///
  /// - Parameter number: greater than the number of every earlier device in the list.
  func columns(number: Int64) -> [Value] {
    [.integer(number), .text("\(value)"), Value(name), Value(seen), .text("\(added)")]
  }

  init?(columns: [Value]) {
    guard let value = columns[1].uuid, let added = columns[4].time else { return nil }
    let seen = columns[3].time
    guard (seen == nil) == (columns[3] == .null) else { return nil }
    self.init(value: value, name: columns[2].asText, seen: seen, added: added)
  }
}

extension Settings {
  /// The columns of the row of `setting`.
  ///
  /// `machine_recorded` distinguishes a recorded machine without any mark from no recorded machine.
  var columns: [Value] {
    [
      .integer(1), Value(account), .integer(machine == nil ? 0 : 1), Value(machine?.fingerprint.machine),
      Value(machine?.fingerprint.hardware), (machine?.suspicion).map { .text($0.cause.rawValue) } ?? .null,
      Value(machine?.suspicion?.since), Value(machine?.spentMachine), .integer(isSealed ? 1 : 0),
    ]
  }

  init?(columns: [Value]) {
    account = columns[1].asText
    isSealed = columns[8] != .integer(0)
    guard columns[2] != .integer(0) else { return }
    var machine = MachineRecord(
      fingerprint: MachineFingerprint(machine: columns[3].asText, hardware: columns[4].asText),
      spentMachine: columns[7].asText)
    if columns[5] != .null || columns[6] != .null {
      guard let cause = columns[5].named(Cause.self), let since = columns[6].time else { return nil }
      machine.suspicion = .init(cause: cause, since: since)
    }
    self.machine = machine
  }
}

extension FormerMachine {
  /// The columns of the row of `former_machine`.
  var columns: [Value] {
    [
      .integer(number), Value(fingerprint.machine), Value(fingerprint.hardware), .integer(lastIdentifier),
      .text(cause.rawValue), .text("\(left)"), .integer(isAcknowledged ? 1 : 0),
    ]
  }

  init?(columns: [Value]) {
    guard let number = columns[0].number, let lastIdentifier = columns[3].number,
      let cause = columns[4].named(Cause.self), let left = columns[5].time
    else { return nil }
    self.init(
      number: number, fingerprint: MachineFingerprint(machine: columns[1].asText, hardware: columns[2].asText),
      lastIdentifier: lastIdentifier, cause: cause, left: left, isAcknowledged: columns[6] != .integer(0))
  }
}

extension Timestamp {
  /// The columns of the row of `backup`.
  var backupColumns: [Value] { [.integer(1), .text("\(self)")] }
}

extension WrappedKey {
  /// The columns of the row of `data_key`.
  var columns: [Value] {
    [.integer(1), .text(master.bytes), .text(source.rawValue), .text("\(created)"), .blob(ciphertext)]
  }

  init?(columns: [Value]) {
    guard let master = columns[1].asText, let source = columns[2].named(KeySource.self), let created = columns[3].time,
      case .blob(let ciphertext) = columns[4]
    else { return nil }
    self.init(master: master, source: source, created: created, ciphertext: ciphertext)
  }
}

// MARK: - Values

extension Value {
  /// Creates a text, or NULL for nil.
  init(_ text: Text?) { self = text.map { .text($0.bytes) } ?? .null }

  /// Creates a time in the format of RFC 3339, or NULL for nil.
  init(_ time: Timestamp?) { self = time.map { Value($0) } ?? .null }

  /// Creates a time in the format of RFC 3339.
  init(_ time: Timestamp) {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(24)
    time.append(to: &bytes)
    self = .text(bytes)
  }

  /// Creates the canonical text of a UUID.
  init(_ uuid: UUID) {
    var bytes: [UInt8] = []
    uuid.append(to: &bytes)
    self = .text(bytes)
  }

  /// The text, which is not validated because this program wrote it; nil for other kinds.
  var asText: Text? {
    guard case .text(let bytes) = self else { return nil }
    return Text(trusted: bytes)
  }

  /// Whether the value is text or NULL. In a row from an untrusted source no other kind may pass for a missing text.
  var isTextOrNull: Bool { self == .null || asText != nil }

  var number: Int64? {
    guard case .integer(let number) = self else { return nil }
    return number
  }

  var uuid: UUID? { asText.flatMap { UUID($0) } }

  var time: Timestamp? { asText.flatMap { Timestamp(parsing: $0) } }

  /// Returns the case of an enumeration whose raw value is the text.
  func named<Kind: RawRepresentable<String>>(_ kind: Kind.Type) -> Kind? {
    asText.flatMap { Kind(rawValue: String(decoding: $0.bytes, as: UTF8.self)) }
  }
}
