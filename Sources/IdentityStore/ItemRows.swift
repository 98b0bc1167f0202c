import IdentityCore

/// What it takes to write items and to read them.
struct ItemSealing: Sendable {
  let memory: SecretMemory
  let key: SealingKey
  /// The store they are in: they open in no other.
  let store: UUID
}

// An item as the columns of a row of `item`, and back. What is said of it is sealed; what has to be known without a key,
// so that an item can end with its app, is not.
extension Item {
  /// What stands in its row, and its secret as the store keeps it.
  ///
  /// - Returns: nil where the secret is not one that this process sealed.
  func sealed(with secret: SealedSecret, _ sealing: ItemSealing) -> (item: SealedItem, secret: [UInt8])? {
    let description = description
    let sealed = sealing.key.seal(description, with: associated(nil, sealing.store, "description"))
    let associated = associated(description, sealing.store, "secret")
    return sealing.memory.stored(secret, with: associated, sealing.key).map {
      (SealedItem(item: self, description: sealed), $0)
    }
  }

  /// Appends the columns that are not sealed.
  func append(to row: inout RowBytes) {
    row.append(number)
    row.append(key.group)
    row.append(key.service)
    row.append(key.account)
    row.append(owner)
    row.append(edition)
    row.append(isThisDeviceOnly)
    row.append(endsWithInstallation)
    row.append(Int64(secretLength))
    row.append(created)
    row.append(modified)
  }

  /// Reads a row.
  ///
  /// - Parameter sealing: nil where the key is missing; the label and the attributes are then left out.
  init?(columns: [Value], _ sealing: ItemSealing?) {
    guard let number = columns[0].number, let group = columns[1].asText, let service = columns[2].asText,
      let account = columns[3].asText, let owner = columns[4].asText, let edition = columns[5].uuid,
      let length = columns[8].number, let created = columns[9].time, let modified = columns[10].time,
      case .blob(let sealed) = columns[11]
    else { return nil }
    self.init(
      key: ItemKey(group: group, service: service, account: account), number: number, edition: edition, owner: owner,
      label: nil, attributes: [], isThisDeviceOnly: columns[6] != .integer(0),
      endsWithInstallation: columns[7] != .integer(0), secretLength: Int(clamping: length), created: created,
      modified: modified)
    guard let sealing else { return }
    let associated = associated(nil, sealing.store, "description")
    guard let opened = sealing.key.open(sealed, with: associated), describe(opened) else { return nil }
  }

  /// The label, then each attribute's name and value.
  var description: [UInt8] {
    var texts = [label ?? ""]
    for attribute in attributes { texts += [attribute.name, attribute.value] }
    return texts.terminated
  }

  mutating func describe(_ bytes: [UInt8]) -> Bool {
    // A backup may be of anybody's making.
    guard String(validating: bytes, as: UTF8.self) != nil, let texts = [Text](terminated: bytes),
      texts.count % 2 == 1
    else { return false }
    label = texts[0].isEmpty ? nil : texts[0]
    attributes = stride(from: 1, to: texts.count, by: 2).map { Attribute(name: texts[$0], value: texts[$0 + 1]) }
    return true
  }

  /// What the secret belongs to: the store, the key of the item, and everything that is said of it.
  func associated(with store: UUID) -> [UInt8] {
    associated(description, store, "secret")
  }

  private func associated(_ description: [UInt8]?, _ store: UUID, _ kind: String) -> [UInt8] {
    var row = RowBytes()
    row.append("identityd item \(kind)")
    row.append(store)
    append(to: &row)
    if let description { row.append(.blob, description) }
    return row.bytes
  }
}

/// A row of `item`: what is said of the item is sealed with all others of its columns.
struct SealedItem: StoredRow {
  let item: Item
  let description: [UInt8]

  var key: Value { .integer(item.number) }

  func append(to row: inout RowBytes) {
    item.append(to: &row)
    row.append(.blob, description)
  }
}

/// The statements of `secret`: one row an item, which only its own edition of it opens.
///
/// These rows are in no digest and have no proof: they are not read at a start. One that is missing, or not the one that
/// belongs to its item, is noticed when it is asked for.
final class SecretStatements: Sendable {
  private let finding: Statement
  private let replacing: Statement
  private let removing: Statement

  init(_ database: borrowing Database) throws(DatabaseError) {
    finding = try database.prepare(Self.selection)
    replacing = try database.prepare("INSERT OR REPLACE INTO secret (n, edition, sealed) VALUES (?1, ?2, ?3)")
    removing = try database.prepare("DELETE FROM secret WHERE n = ?1")
  }

  static let selection = "SELECT edition, sealed FROM secret WHERE n = ?1"

  func replace(_ item: Item, _ sealed: [UInt8]) throws(DatabaseError) {
    var row = RowBytes()
    row.append(item.number)
    row.append(item.edition)
    row.append(.blob, sealed)
    try replacing.run(row)
  }

  func remove(_ number: Int64) throws(DatabaseError) { try removing.run([.integer(number)]) }

  func find(_ number: Int64) throws(DatabaseError) -> StoredSecret? {
    try StoredSecret(finding.row([.integer(number)], columns: 2))
  }
}

/// A row of `secret`.
struct StoredSecret {
  /// The edition of the item that it belongs to; nil where it is none that this program writes.
  let edition: UUID?
  let sealed: [UInt8]

  init?(_ columns: [Value]?) {
    guard let columns, case .blob(let sealed) = columns[1] else { return nil }
    edition = columns[0].uuid
    self.sealed = sealed
  }
}
