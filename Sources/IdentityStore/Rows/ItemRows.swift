import IdentityCore

/// The guarded memory and the key that encrypt and decrypt items.
struct ItemCipher: Sendable {
  let memory: SecretMemory
  let key: CipherKey
  /// The ID of the store. Items cannot be decrypted in another store.
  let store: UUID
}

// Conversion between an item and the columns of a row of `item`. Label and attributes are encrypted. The columns by
// which an item is deleted together with its app, even without the key, are not.
extension Item {
  /// Returns the row of the item, and its secret as the store keeps it.
  ///
  /// - Returns: nil if this process did not encrypt the secret.
  func encrypted(with secret: SealedSecret, _ cipher: ItemCipher) -> (item: EncryptedItem, secret: [UInt8])? {
    let description = description
    var row = Self.associated(cipher.store, "description")
    append(to: &row)
    let ciphertext = cipher.key.encrypt(description, with: row.bytes)
    let associated = associated(description, cipher.store)
    return cipher.memory.reencrypted(forStore: secret, with: associated, cipher.key).map {
      (EncryptedItem(item: self, description: ciphertext), $0)
    }
  }

  /// Appends the columns that are not encrypted.
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

  /// Decodes the columns of a row, except label and attributes.
  init?(columns: [Value]) {
    var row = RowBytes()
    columns.append(to: &row)
    var decoder = ItemDecoder(nil)
    guard let item = decoder.item(in: row) else { return nil }
    self = item
  }

  /// The label, then the name and value of each attribute, each terminated by a NUL.
  var description: [UInt8] {
    var texts = [label ?? ""]
    for attribute in attributes { texts += [attribute.name, attribute.value] }
    return texts.terminated
  }

  /// Returns the label and the attributes in the texts of a ``description``; nil if the texts are not those of one.
  static func described(by texts: [Text]) -> (label: Text?, attributes: [Attribute])? {
    guard texts.count % 2 == 1 else { return nil }
    return (
      texts[0].isEmpty ? nil : texts[0],
      (0..<texts.count / 2).map { Attribute(name: texts[2 * $0 + 1], value: texts[2 * $0 + 2]) }
    )
  }

  /// Returns the associated data of the secret: the ID of the store, all columns of the item, label and attributes.
  func associated(with store: UUID) -> [UInt8] { associated(description, store) }

  private func associated(_ description: [UInt8], _ store: UUID) -> [UInt8] {
    var row = Self.associated(store, "secret")
    append(to: &row)
    row.append(.blob, description)
    return row.bytes
  }

  /// Returns the beginning of the associated data, which all items of a store share.
  fileprivate static func associated(_ store: UUID, _ kind: String) -> RowBytes {
    var row = RowBytes()
    row.append("identityd item \(kind)")
    row.append(store)
    return row
  }
}

/// Decodes rows of `item` one after the other, with buffers that all rows share.
struct ItemDecoder {
  /// Nil if the key is missing. Label and attributes are then left out.
  private let cipher: ItemCipher?
  /// The associated data of a description. The columns before the description are appended as they are in the row.
  private var associated: RowBytes
  private var message: [UInt8] = []
  private var group = RepeatedText()
  private var service = RepeatedText()
  private var owner = RepeatedText()
  private var time = Repeated<Timestamp>()
  /// The texts of the item decoded last, whose storage equal texts share.
  private var texts: [Text] = []

  init(_ cipher: ItemCipher?) {
    self.cipher = cipher
    associated = Item.associated(cipher?.store ?? .zero, "description")
  }

  /// Decodes a row; nil if this program would not write such a row.
  mutating func item(in row: borrowing RowBytes) -> Item? {
    var columns = RowReader(row)
    guard let number = columns.number(), let group = columns.text(&group), let service = columns.text(&service),
      let account = columns.text(), let owner = columns.text(&owner), let edition = columns.uuid()
    else { return nil }
    let isThisDeviceOnly = columns.number() != 0
    let endsWithInstallation = columns.number() != 0
    guard let length = columns.number(), let created = columns.time(&time), let modified = columns.time(&time)
    else { return nil }
    let end = columns.position
    guard let ciphertext = columns.bytes(.blob), let (label, attributes) = described(ciphertext, behind: row, upTo: end)
    else { return nil }
    return Item(
      key: ItemKey(group: group, service: service, account: account), number: number, edition: edition, owner: owner,
      label: label, attributes: attributes, isThisDeviceOnly: isThisDeviceOnly,
      endsWithInstallation: endsWithInstallation, secretLength: Int(clamping: length), created: created,
      modified: modified)
  }

  private mutating func described(
    _ ciphertext: ArraySlice<UInt8>, behind row: borrowing RowBytes, upTo end: Int
  ) -> (label: Text?, attributes: [Item.Attribute])? {
    guard let cipher else { return (nil, []) }
    let start = associated.bytes.count
    associated.append(valuesOf: row, upTo: end)
    defer { associated.cut(to: start) }
    guard let length = CipherKey.length(ofCiphertext: ciphertext.count) else { return nil }
    // One byte more than needed, so that an empty message has an address too.
    if message.count <= length { message = [UInt8](repeating: 0, count: length + 1) }
    guard unsafe cipher.key.decrypt(ciphertext, with: associated.bytes, into: &message) != nil,
      texts.replace(terminated: message[..<length])
    else { return nil }
    return Item.described(by: texts)
  }
}

/// The row of an item with its description.
///
/// In the store the description is encrypted, with the other columns as associated data. In a backup the description
/// is not encrypted separately.
struct EncryptedItem: StoredRow {
  let item: Item
  let description: [UInt8]

  var key: Value { .integer(item.number) }

  func append(to row: inout RowBytes) {
    item.append(to: &row)
    row.append(.blob, description)
  }
}

/// The statements of `secret`, which has one row for each item. A secret can be decrypted only with its edition of the
/// item.
///
/// These rows are in no digest and have no proof, because a start does not read them. A missing or wrong row is
/// detected when its secret is requested.
final class SecretStatements: Sendable {
  private let finding: Statement
  private let replacing: Statement
  private let removing: Statement

  init(_ database: borrowing Database) throws(DatabaseError) {
    finding = database.prepare(Self.selection)
    replacing = database.prepare("INSERT OR REPLACE INTO secret (n, edition, sealed) VALUES (?1, ?2, ?3)")
    removing = database.prepare("DELETE FROM secret WHERE n = ?1")
    // Nothing else at a start would detect that the table is missing.
    try finding.compile()
  }

  static let selection = "SELECT edition, sealed FROM secret WHERE n = ?1"

  func replace(_ item: Item, _ ciphertext: [UInt8]) throws(DatabaseError) {
    var row = RowBytes()
    row.append(item.number)
    row.append(item.edition)
    row.append(.blob, ciphertext)
    try replacing.run(row)
  }

  func remove(_ number: Int64) throws(DatabaseError) { try removing.run([.integer(number)]) }

  func find(_ number: Int64) throws(DatabaseError) -> StoredSecret? {
    try StoredSecret(finding.row([.integer(number)], columns: 2))
  }
}

/// A row of `secret`.
struct StoredSecret {
  /// The edition of the item that the secret belongs to; nil if this program would not write such a value.
  let edition: UUID?
  let ciphertext: [UInt8]

  init?(_ columns: [Value]?) {
    guard let columns, case .blob(let ciphertext) = columns[1] else { return nil }
    edition = columns[0].uuid
    self.ciphertext = ciphertext
  }
}
