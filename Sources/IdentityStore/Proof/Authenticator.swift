import CSodium
import IdentityCore

/// Computes and verifies the proof of a row: a MAC (BLAKE2b keyed with the store's key) over table name and columns.
///
/// In a test plain SQLite returned wrong data without an error for three of four single flipped bits.
struct Authenticator: ~Copyable, Sendable {
  /// The length of the key and of a proof, in bytes.
  static let length = 32

  private let key: SecretBytes

  /// Moves the key into guarded memory and wipes the array.
  ///
  /// Nil if the key has another length, or if guarded memory cannot be allocated.
  init?(key bytes: inout [UInt8]) {
    guard bytes.count == Self.length, sodium_init() >= 0, let key = SecretBytes(consuming: &bytes) else { return nil }
    self.key = key
  }

  /// A copy of the key for its file. The caller must wipe the copy.
  var keyBytes: [UInt8] {
    unsafe key.withBytes { unsafe Array(UnsafeBufferPointer(start: $0, count: Self.length)) }
  }

  /// Returns another authenticator with the same key, or nil if guarded memory cannot be allocated.
  func copy() -> Authenticator? {
    var bytes = keyBytes
    return Authenticator(key: &bytes)
  }

  /// Returns the proof of a row.
  ///
  /// The encoding is injective: rows that differ in content or table differ in the bytes that the MAC covers.
  func proof(of row: borrowing RowBytes) -> Proof {
    var proof = Proof()
    unsafe proof.withMutableBytes { bytes in
      if let start = bytes.baseAddress { unsafe write(row, into: start.assumingMemoryBound(to: UInt8.self)) }
    }
    return proof
  }

  /// Returns the proof of values that are not encoded yet.
  func proof(table: String, _ values: [Value]) -> [UInt8] {
    var row = RowBytes(behind: table)
    values.append(to: &row)
    var proof = [UInt8](repeating: 0, count: Self.length)
    unsafe write(row, into: &proof)
    return proof
  }

  private func write(_ row: borrowing RowBytes, into proof: UnsafeMutablePointer<UInt8>) {
    unsafe key.withBytes { start in
      // Fails only for lengths out of range, and both lengths are constants.
      _ = unsafe crypto_generichash(proof, Self.length, row.bytes, UInt64(row.bytes.count), start, Self.length)
    }
  }

  /// Encodes values as bytes. The encoding is injective: different lists of values give different bytes.
  static func message(_ values: [Value], behind table: String? = nil) -> [UInt8] {
    var row = RowBytes(behind: table)
    values.append(to: &row)
    return row.bytes
  }

  /// Reads and verifies the current row of a statement: the columns of a table, followed by their proof.
  ///
  /// - Parameter row: receives the columns.
  /// - Returns: the proof, or nil if it does not match the columns.
  func proof(ofRowIn statement: borrowing Statement, of table: Table, into row: inout RowBytes) -> Proof? {
    row.begin(table)
    statement.append(table.columns.count, to: &row)
    let proof = proof(of: row)
    return statement.holds(proof, in: Int32(table.columns.count)) ? proof : nil
  }
}

/// The proof of a row.
///
/// A structure and not an array: a commit makes several proofs, and each array would be a separate allocation.
struct Proof: Equatable, Sendable {
  fileprivate var words: SIMD4<UInt64> = .zero

  /// Takes the bytes of a stored proof; nil if their number is wrong.
  init?(_ bytes: [UInt8]) {
    guard bytes.count == Authenticator.length else { return nil }
    unsafe withMutableBytes { unsafe $0.copyBytes(from: bytes) }
  }

  init() {}

  fileprivate mutating func withMutableBytes(_ body: (UnsafeMutableRawBufferPointer) -> Void) {
    unsafe Swift.withUnsafeMutableBytes(of: &words, body)
  }

  /// Calls a closure with the ``Authenticator/length`` bytes of the proof.
  func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    unsafe Swift.withUnsafeBytes(of: words, body)
  }
}

/// The digest of a set of rows: their number, and the exclusive or of their proofs.
///
/// A digest reveals a missing row. Adding or removing a row needs no access to the other rows.
struct Digest: Equatable, Sendable {
  private(set) var count: Int64 = 0
  /// The exclusive or of the proofs.
  private(set) var proof = Proof()

  init() {}

  /// Decodes a stored digest; nil if the number of bytes is wrong.
  init?(count: Int64, bytes: [UInt8]) {
    guard let proof = Proof(bytes) else { return nil }
    self.count = count
    self.proof = proof
  }

  /// Adds a row.
  mutating func add(_ proof: Proof) {
    count += 1
    combine(proof)
  }

  /// Adds the rows of another digest.
  mutating func add(_ other: Digest) {
    count += other.count
    combine(other.proof)
  }

  /// Removes a row that was added before.
  mutating func remove(_ proof: Proof) {
    count -= 1
    combine(proof)
  }

  /// Removes the rows of another digest, all of which were added before.
  mutating func remove(_ rows: Digest) {
    count -= rows.count
    combine(rows.proof)
  }

  private mutating func combine(_ other: Proof) { proof.words ^= other.words }

  /// Appends the number of rows, least significant byte first, and the exclusive or of their proofs.
  func append(to bytes: inout OutputSpan<UInt8>) {
    bytes.append(number: UInt64(bitPattern: count))
    unsafe proof.withBytes { unsafe bytes.append($0) }
  }
}
