import IdentityCore

/// The guarded memory and the key that encrypt and decrypt items.
struct ItemCipher: Sendable {
  let memory: SecretMemory
  let key: CipherKey
  /// The ID of the store. Items cannot be decrypted in another store.
  let store: UUID
}

/// Writes the fields of records into a row. Encrypts the texts that share a column.
struct RowWriter {
  /// The row. The caller begins each.
  var row = RowBytes()
  private var fields = FieldList()
  /// Nil if the key is missing. Texts to be encrypted are then left out.
  private let cipher: ItemCipher?

  init(_ cipher: ItemCipher?) { self.cipher = cipher }

  /// Appends the fields of a record to the row.
  mutating func append(_ record: consuming some StoredRecord) {
    fields.removeAll()
    record.list(in: &fields)
    Self.append(fields.contents, to: &row, cipher)
  }

  private static func append(_ contents: [FieldContent], to row: inout RowBytes, _ cipher: ItemCipher?) {
    let contents = contents.span
    for index in contents.indices {
      if case .sealed(let texts) = contents[index] {
        row.append(.blob, encrypted(texts, behind: row, cipher))
      } else {
        row.append(contents[index])
      }
    }
  }

  private static func encrypted(_ texts: [Text], behind row: RowBytes, _ cipher: ItemCipher?) -> [UInt8] {
    guard let cipher else { return [] }
    var associated = Item.associated(cipher.store, "description")
    associated.append(values: row.bytes[row.start...])
    return cipher.key.encrypt(texts.terminated, with: associated.bytes)
  }
}

/// Decrypts the descriptions of items one after the other, with buffers that all of them share.
final class DescriptionOpener {
  /// Nil if the key is missing. Descriptions are then left out.
  private let cipher: ItemCipher?
  /// The associated data of a description. The columns before the description are appended as they are in the row.
  private var associated: RowBytes
  private var message: [UInt8] = []
  /// The texts of the description decoded last, whose storage equal texts share.
  private var texts: [Text] = []

  init(_ cipher: ItemCipher?) {
    self.cipher = cipher
    associated = Item.associated(cipher?.store ?? .zero, "description")
  }

  /// Decodes a description; see ``RowReader/Unsealing``.
  func open(_ row: [UInt8], _ values: Range<Int>, _ content: Range<Int>, _ texts: inout [Text]) -> Bool {
    guard let cipher else {
      texts = [Text("")]
      return true
    }
    let start = associated.bytes.count
    associated.append(values: row[values])
    defer { associated.cut(to: start) }
    guard let length = CipherKey.length(ofCiphertext: content.count) else { return false }
    // One byte more than needed, so that an empty message has an address too.
    if message.count <= length { message = [UInt8](repeating: 0, count: length + 1) }
    guard unsafe cipher.key.decrypt(row[content], with: associated.bytes, into: &message) != nil,
      self.texts.replace(terminated: message[..<length])
    else { return false }
    texts = self.texts
    return true
  }
}

extension Item {
  /// Returns the secret as the store keeps it; nil if this process did not encrypt the secret.
  func encrypted(_ secret: SealedSecret, _ cipher: ItemCipher) -> [UInt8]? {
    cipher.memory.reencrypted(forStore: secret, with: associated(with: cipher.store), cipher.key)
  }

  /// Returns the associated data of the secret: the ID of the store, all columns of the item, label and attributes.
  func associated(with store: UUID) -> [UInt8] {
    var row = Self.associated(store, "secret")
    row.append(self)
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
