extension NumberedIdentifier: StoredRecord {
  /// No text equals a BLOB, so an empty one stands for NULL in the index.
  package static let table = RecordTable(
    "identifier", of: Self.self, digestIndex: 2, .identifiers,
    indexes: [
      "identifier_in_force ON identifier (level, coalesce(app, x''), coalesce(vendor, x'')) WHERE ended IS NULL"
    ])

  package init() {
    self.init(
      number: 0,
      identifier: Identifier(
        scope: .device, value: .zero, created: .epoch, origin: .random, cause: .firstUse, author: nil))
  }

  package mutating func visit(_ fields: inout some FieldVisitor) {
    fields.field("n", &number)
    var level = identifier.scope.level
    var (app, vendor) = (identifier.scope.app, identifier.scope.vendor)
    fields.field("level", &level, .repeats)
    fields.field("app", &app)
    fields.field("vendor", &vendor)
    fields.field("value", &identifier.value)
    fields.field("origin", &identifier.origin, .repeats)
    fields.field("created", &identifier.created)
    fields.field("cause", &identifier.cause, .repeats)
    fields.field("author", &identifier.author)
    var (ended, endCause) = (identifier.end?.time, identifier.end?.cause)
    fields.field("ended", &ended)
    fields.field("end_cause", &endCause)
    guard fields.isReading else { return }
    // The author often is the app or vendor too, and then shares its text.
    if let author = identifier.author, let owner = app ?? vendor, author == owner { identifier.author = owner }
    if let scope = Scope(level, app: app, vendor: vendor) { identifier.scope = scope } else { fields.refuse() }
    identifier.end = nil
    if let ended, let endCause {
      identifier.end = .init(time: ended, cause: endCause)
    } else if ended != nil || endCause != nil {
      fields.refuse()
    }
  }
}

extension Level: StoredWord {}
extension Origin: StoredWord {}

/// A device of the account with its position in the list, as it is stored.
package struct DeviceRecord: StoredRecord {
  package static let table = RecordTable("device", of: Self.self, digestIndex: 3, .devices)

  /// Greater than the number of every earlier device in the list.
  package var number: Int64
  /// The device.
  package var device: ListedDevice

  package init(number: Int64, device: ListedDevice) {
    self.number = number
    self.device = device
  }

  package init() { self.init(number: 0, device: ListedDevice(value: .zero, added: .epoch)) }

  package mutating func visit(_ fields: inout some FieldVisitor) {
    fields.field("n", &number)
    fields.field("value", &device.value)
    fields.field("name", &device.name)
    fields.field("seen", &device.seen)
    fields.field("added", &device.added)
  }
}
