import CSodium
package import IdentityCore

// Conversion between the parts of the fleet and the columns of a row of `fleet`, without its revision and proof.

extension FleetStanding {
  /// The key of the row: no device has an empty identifier.
  private static let key = Value.text([])

  /// The columns of the row of this device. Spaces join the runs.
  var columns: [Value] {
    [
      Self.key, .integer(Int64(generation)), .integer(counter), .integer(0), .integer(0), .null,
      .text(Array(runs.map { Text($0).bytes }.joined(separator: [UInt8(ascii: " ")]))),
    ]
  }

  init?(columns: [Value]) {
    guard columns[0] == Self.key, let generation = columns[1].number.flatMap({ UInt32(exactly: $0) }),
      let counter = columns[2].number, counter >= 0, let words = columns[6].asText
    else { return nil }
    let runs = words.bytes.split(separator: UInt8(ascii: " ")).map { UUID(Text(trusted: Array($0))) }
    guard runs.count <= Bound.fleetRuns, runs.allSatisfy({ $0 != nil }) else { return nil }
    self.init(counter: counter, generation: generation, runs: runs.compactMap(\.self))
  }
}

extension FleetRecord {
  /// The columns of the row of another device. A counter has all 64 bits, and the column the same bits.
  var columns: [Value] {
    [
      Value(device), .integer(Int64(generation)), .integer(Int64(bitPattern: counter)), .integer(isGone ? 1 : 0),
      .integer(isSuspect ? 1 : 0), .text(message.bytes), .null,
    ]
  }

  init?(columns: [Value]) {
    guard let device = columns[0].uuid, let generation = columns[1].number.flatMap({ UInt32(exactly: $0) }),
      let counter = columns[2].number, let gone = columns[3].number, let suspect = columns[4].number,
      0...1 ~= gone, 0...1 ~= suspect, let message = columns[5].asText, columns[6] == .null
    else { return nil }
    self.init(
      device: device, generation: generation, counter: UInt64(bitPattern: counter), isGone: gone == 1,
      isSuspect: suspect == 1, message: message)
  }

  /// Returns the SHA-256 of a message that is given in Base64, as hexadecimal digits.
  package static func digest(of message: Text) -> Text {
    let bytes = Base64.bytes(message.bytes) ?? []
    var digits: [UInt8] = []
    unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Int(crypto_hash_sha256_BYTES)) { hash in
      guard let start = hash.baseAddress else { return }
      // Always returns 0.
      _ = unsafe crypto_hash_sha256(start, bytes, UInt64(bytes.count))
      unsafe digits.append(hexadecimal: hash)
    }
    return Text(trusted: digits)
  }
}
