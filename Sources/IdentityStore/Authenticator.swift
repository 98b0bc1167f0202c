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

  /// The key, for its file; to be wiped.
  var keyBytes: [UInt8] {
    unsafe key.withBytes { unsafe Array(UnsafeBufferPointer(start: $0, count: Self.length)) }
  }

  /// Another one with the same key; nil where there is no memory to lock.
  func copy() -> Authenticator? {
    var bytes = keyBytes
    return Authenticator(key: &bytes)
  }

  /// The proof of a row: no two rows of different content or table have the same bytes to prove.
  func proof(of row: borrowing RowBytes) -> Proof {
    var proof = Proof()
    unsafe proof.withMutableBytes { bytes in
      if let start = bytes.baseAddress { unsafe write(row, into: start.assumingMemoryBound(to: UInt8.self)) }
    }
    return proof
  }

  /// The same, of values that are not bytes yet.
  func proof(table: String, _ values: [Value]) -> [UInt8] {
    var row = RowBytes(behind: table)
    values.append(to: &row)
    var proof = [UInt8](repeating: 0, count: Self.length)
    unsafe write(row, into: &proof)
    return proof
  }

  private func write(_ row: borrowing RowBytes, into proof: UnsafeMutablePointer<UInt8>) {
    unsafe key.withBytes { start in
      // Fails only for lengths that these are not.
      _ = unsafe crypto_generichash(proof, Self.length, row.bytes, UInt64(row.bytes.count), start, Self.length)
    }
  }

  /// Values as bytes: no two lists of them have the same.
  static func message(_ values: [Value], behind table: String? = nil) -> [UInt8] {
    var row = RowBytes(behind: table)
    values.append(to: &row)
    return row.bytes
  }

  /// Reads the row that a statement is at: the columns of a table, the proof behind them.
  ///
  /// - Parameter row: takes the columns.
  /// - Returns: the proof; nil where it does not prove them.
  func proof(ofRowIn statement: borrowing Statement, of table: Table, into row: inout RowBytes) -> Proof? {
    row.begin(table)
    statement.append(table.columns.count, to: &row)
    let proof = proof(of: row)
    return statement.holds(proof, in: Int32(table.columns.count)) ? proof : nil
  }
}

/// What proves a row. It is no array: there are several of them in a commit, and each would be memory of its own.
struct Proof: Equatable, Sendable {
  fileprivate var words: SIMD4<UInt64> = .zero

  /// Takes bytes as they stand in a row; nil for what is no proof.
  init?(_ bytes: [UInt8]) {
    guard bytes.count == Authenticator.length else { return nil }
    unsafe withMutableBytes { unsafe $0.copyBytes(from: bytes) }
  }

  init() {}

  fileprivate mutating func withMutableBytes(_ body: (UnsafeMutableRawBufferPointer) -> Void) {
    unsafe Swift.withUnsafeMutableBytes(of: &words, body)
  }

  /// Lends its bytes out: ``Authenticator/length`` of them.
  func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    unsafe Swift.withUnsafeBytes(of: words, body)
  }
}

/// One proof for all rows together, so that a row that vanished is missed: the exclusive or of their proofs, and their
/// number. It changes with each row at the cost of that row alone.
struct Digest: Equatable, Sendable {
  private(set) var count: Int64 = 0
  /// The exclusive or.
  private(set) var proof = Proof()

  /// Of no row.
  init() {}

  /// Reads it back; nil for bytes that are none.
  init?(count: Int64, bytes: [UInt8]) {
    guard let proof = Proof(bytes) else { return nil }
    self.count = count
    self.proof = proof
  }

  /// Counts a row in.
  mutating func add(_ proof: Proof) {
    count += 1
    combine(proof)
  }

  /// Counts rows in that were counted elsewhere.
  mutating func add(_ other: Digest) {
    count += other.count
    combine(other.proof)
  }

  /// Takes a row out that was counted in.
  mutating func remove(_ proof: Proof) {
    count -= 1
    combine(proof)
  }

  /// Takes rows out that were counted in.
  mutating func remove(_ rows: Digest) {
    count -= rows.count
    combine(rows.proof)
  }

  private mutating func combine(_ other: Proof) { proof.words ^= other.words }

  /// Appends the number of rows, the least significant byte first, and their proof.
  func append(to bytes: inout OutputSpan<UInt8>) {
    bytes.append(number: UInt64(bitPattern: count))
    unsafe proof.withBytes { unsafe bytes.append($0) }
  }
}
