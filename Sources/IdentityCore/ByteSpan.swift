extension Span<UInt8> {
  /// Returns eight bytes as a number, least significant first. A start decodes a dozen for each row.
  ///
  /// Traps if there are fewer bytes behind the index.
  @inlinable @inline(__always)
  package func word(at index: Int) -> UInt64 {
    // One check for all bytes, so that they are read at once.
    let bytes = extracting(index..<index + 8)
    var word: UInt64 = 0
    for byte in 0..<8 { word |= UInt64(bytes[byte]) << UInt64(8 * byte) }
    return word
  }

  /// Returns whether the first bytes are those of another span.
  ///
  /// A start does this for each event. `starts(with:)` costs four times as much.
  @inlinable
  package func begins(with other: borrowing Span<UInt8>) -> Bool {
    guard count >= other.count else { return false }
    for index in other.indices where self[index] != other[index] { return false }
    return true
  }
}
