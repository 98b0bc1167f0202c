/// The account, the machine that the daemon runs on, and the seal: the only row of its table.
package struct StoredSettings: StoredRecord, Equatable {
  package static let table = RecordTable("setting", of: Self.self, digestIndex: 0, .settings)

  /// The name of the account.
  package var account: Text?
  /// The machine on which the daemon runs; nil before it was recorded.
  package var machine: MachineRecord?
  /// Whether the store was sealed.
  package var isSealed = false

  package init() {}

  package init(machine: MachineRecord) { self.machine = machine }

  /// `machine_recorded` distinguishes a recorded machine without any mark from no recorded machine.
  package mutating func visit(_ fields: inout some FieldVisitor) {
    fields.only()
    fields.field("account", &account)
    var isRecorded = machine != nil
    var found = machine ?? MachineRecord(fingerprint: MachineFingerprint(machine: nil, hardware: nil))
    var (cause, since) = (found.suspicion?.cause, found.suspicion?.since)
    fields.field("machine_recorded", &isRecorded)
    fields.field("machine", &found.fingerprint.machine)
    fields.field("hardware", &found.fingerprint.hardware)
    fields.field("suspicion", &cause)
    fields.field("suspected", &since)
    fields.field("spent_machine", &found.spentMachine)
    fields.field("sealed", &isSealed)
    guard fields.isReading else { return }
    machine = nil
    guard isRecorded else { return }
    found.suspicion = nil
    if let cause, let since {
      found.suspicion = .init(cause: cause, since: since)
    } else if cause != nil || since != nil {
      fields.refuse()
    }
    machine = found
  }
}

extension FieldVisitor {
  /// Visits the key of a table with a single row.
  package mutating func only() {
    var only: Int64 = 1
    field("only", &only)
    if only != 1 { refuse() }
  }
}

extension Cause: StoredWord {}

extension FormerMachine: StoredRecord {
  package static let table = RecordTable("former_machine", of: Self.self, digestIndex: 12, .settings, since: 2)

  package init() {
    self.init(
      number: 0, fingerprint: MachineFingerprint(machine: nil, hardware: nil), lastIdentifier: 0, cause: .cloned,
      left: .epoch, isAcknowledged: false)
  }

  package mutating func visit(_ fields: inout some FieldVisitor) {
    fields.field("n", &number)
    fields.field("machine", &fingerprint.machine, .lasting)
    fields.field("hardware", &fingerprint.hardware, .lasting)
    fields.field("last_identifier", &lastIdentifier, .lasting)
    fields.field("cause", &cause, .lasting)
    fields.field("left", &left, .lasting)
    fields.field("acknowledged", &isAcknowledged)
  }
}

/// A device identifier that a renewal left to the machine which this one may be a copy of, with some of the items of then.
///
/// The items for this device only are locked, and the push tokens under the identifier are not valid, until the machine
/// is back. A renewal has several records if the items of then that were not left before do not have successive numbers.
package struct LeftDevice: StoredRecord, Equatable {
  package static let table = RecordTable("left_device", of: Self.self, digestIndex: 18, .settings, since: 4)

  /// Greater than the number of every earlier record that is kept.
  package internal(set) var number: Int64
  /// The identifier of the device, shared by its apps.
  package internal(set) var device: UUID
  /// The day of the renewal, numbered as in ``AppUse/day``.
  package internal(set) var day: Int64
  /// The numbers of the items.
  package internal(set) var items: Range<Int64>

  package init(number: Int64, device: UUID, day: Int64, items: Range<Int64>) {
    self.number = number
    self.device = device
    self.day = day
    self.items = items
  }

  package init() { self.init(number: 0, device: .zero, day: 0, items: 0..<0) }

  package mutating func visit(_ fields: inout some FieldVisitor) {
    fields.field("n", &number)
    fields.field("device", &device)
    fields.field("day", &day)
    var (first, end) = (items.lowerBound, items.upperBound)
    fields.field("first_item", &first)
    fields.field("end_item", &end)
    guard fields.isReading else { return }
    if first <= end { items = first..<end } else { fields.refuse() }
  }
}

/// The time of the last backup that a client read to its end: the only row of its table.
package struct LastBackup: StoredRecord {
  package static let table = RecordTable("backup", of: Self.self, digestIndex: 14, .backup, since: 2)

  /// The time at which the backup was made.
  package var made: Timestamp

  package init(made: Timestamp) { self.made = made }

  package init() { self.init(made: .epoch) }

  package mutating func visit(_ fields: inout some FieldVisitor) {
    fields.only()
    fields.field("made", &made)
  }
}
