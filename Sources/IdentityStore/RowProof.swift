/// Proves rows of a table one after the other, in memory that all of them use: at a start there may be a hundred thousand.
struct RowProof: ~Copyable {
  private let table: Table
  /// The name of the table as it begins what is proven, and behind it what the last row was.
  private var message: [UInt8]
  private let head: Int

  init(of table: Table) {
    self.table = table
    message = Authenticator.message([], behind: table.name)
    head = message.count
  }

  /// The proof in the last of a row's columns; nil where it does not prove the others.
  mutating func check(_ columns: [Value], _ authenticator: borrowing Authenticator) -> [UInt8]? {
    guard columns.count == table.columns.count + 1, case .blob(let proof)? = columns.last else { return nil }
    let count = write(columns)
    return authenticator.proves(message, count: count, by: proof) ? proof : nil
  }

  /// Writes all columns but the proof, as ``Authenticator/message(_:behind:)`` does.
  ///
  /// - Returns: how long the message is then.
  private mutating func write(_ columns: [Value]) -> Int {
    var end = head
    for column in columns.dropLast() { end += 9 + column.length }
    if message.count < end { message += repeatElement(0, count: end - message.count) }
    var place = head
    unsafe message.withUnsafeMutableBytes { message in
      for column in columns.dropLast() {
        let length = column.length
        unsafe message[place] = column.kind
        unsafe message.storeBytes(of: UInt64(length).littleEndian, toByteOffset: place + 1, as: UInt64.self)
        place += 9
        switch column {
        case .null: break
        case .integer(let number):
          unsafe message.storeBytes(of: number.littleEndian, toByteOffset: place, as: Int64.self)
        case .text(let bytes), .blob(let bytes):
          unsafe UnsafeMutableRawBufferPointer(rebasing: message[place..<(place + length)]).copyBytes(from: bytes)
        }
        place += length
      }
    }
    return end
  }
}

extension Value {
  /// What stands before it in what is proven.
  fileprivate var kind: UInt8 {
    switch self {
    case .null: 2
    case .integer: 3
    case .text: 4
    case .blob: 5
    }
  }

  /// How many bytes of it are proven.
  fileprivate var length: Int {
    switch self {
    case .null: 0
    case .integer: 8
    case .text(let bytes), .blob(let bytes): bytes.count
    }
  }
}
