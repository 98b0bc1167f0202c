import CSodium

/// Proves that a row is one that this daemon wrote, as it wrote it: BLAKE2b keyed with the store's key, over the name of
/// the table and every column. Plain SQLite returns three of four single flipped bits as good data.
struct Authenticator: ~Copyable, Sendable {
  /// The length of the key and of a proof, in bytes.
  static let length = 32

  private let key: SecretBytes

  /// Takes the key over and wipes the array it came in; nil for a key of another length, or without memory to lock.
  init?(key bytes: inout [UInt8]) {
    guard bytes.count == Self.length, sodium_init() >= 0, let key = SecretBytes(consuming: &bytes) else { return nil }
    self.key = key
  }

  /// The proof of a row: no two rows of different content or table have the same bytes to prove.
  func proof(table: String, _ values: [Value]) -> [UInt8] {
    let message = Self.message(values, behind: table)
    var proof = [UInt8](repeating: 0, count: Self.length)
    unsafe key.withBytes { start in
      // Fails only for lengths that these are not.
      _ = unsafe crypto_generichash(&proof, Self.length, message, UInt64(message.count), start, Self.length)
    }
    return proof
  }

  /// Values as bytes: no two lists of them have the same.
  static func message(_ values: [Value], behind table: String? = nil) -> [UInt8] {
    var message: [UInt8] = []
    message.reserveCapacity(512)
    if let table { append(1, table.utf8, to: &message) }
    for value in values {
      switch value {
      case .null: append(2, [], to: &message)
      case .integer(let number):
        message.append(3)
        message.append(number: 8)
        message.append(number: UInt64(bitPattern: number))
      case .text(let bytes): append(4, bytes, to: &message)
      case .blob(let bytes): append(5, bytes, to: &message)
      }
    }
    return message
  }

  /// Whether two proofs are the same, in a time that does not depend on where they differ.
  static func matches(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    guard left.count == right.count else { return false }
    return unsafe sodium_memcmp(left, right, left.count) == 0
  }

  private static func append(_ kind: UInt8, _ bytes: some Collection<UInt8>, to message: inout [UInt8]) {
    message.append(kind)
    message.append(number: UInt64(bytes.count))
    message.append(contentsOf: bytes)
  }
}

extension [UInt8] {
  /// Appends eight bytes, the least significant first.
  mutating func append(number: UInt64) {
    for shift in stride(from: UInt64(0), to: 64, by: 8) { append(UInt8(truncatingIfNeeded: number >> shift)) }
  }
}

/// A row that is as this daemon wrote it.
struct ProvenRow {
  /// All columns but the proof.
  let values: [Value]
  let proof: [UInt8]
}

extension Authenticator {
  /// Takes the columns of a row of a table, the proof behind them; nil where it does not prove them.
  func proven(_ columns: [Value], of table: Table) -> ProvenRow? {
    guard columns.count == table.columns.count + 1, case .blob(let stored)? = columns.last else { return nil }
    let values = Array(columns.dropLast())
    let proof = proof(table: table.name, values)
    return Self.matches(proof, stored) ? ProvenRow(values: values, proof: proof) : nil
  }
}

/// One proof for all rows together, so that a row that vanished is missed: the exclusive or of their proofs, and their
/// number. It changes with each row at the cost of that row alone.
struct Digest: Equatable, Sendable {
  private(set) var count: Int64
  private(set) var bytes: [UInt8]

  init(count: Int64 = 0, bytes: [UInt8] = [UInt8](repeating: 0, count: Authenticator.length)) {
    self.count = count
    self.bytes = bytes
  }

  /// Counts a row in.
  mutating func add(_ proof: [UInt8]) {
    count += 1
    combine(proof)
  }

  /// Takes a row out that was counted in.
  mutating func remove(_ proof: [UInt8]) {
    count -= 1
    combine(proof)
  }

  private mutating func combine(_ proof: [UInt8]) {
    for index in bytes.indices { bytes[index] ^= proof[index] }
  }
}
