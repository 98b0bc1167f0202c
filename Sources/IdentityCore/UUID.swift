/// A universally unique identifier: 128 bits, written in lower case with hyphens (RFC 9562, section 4).
package struct UUID: Hashable, Sendable {
  /// The first eight bytes, most significant first.
  package let high: UInt64
  /// The last eight bytes, most significant first.
  package let low: UInt64

  /// Makes the identifier with exactly these bits.
  package init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// All bits zero (RFC 9562, section 5.9): a placeholder, nobody's identifier.
  package static let zero = UUID(high: 0, low: 0)

  /// All bits one (RFC 9562, section 5.10): nobody's identifier either.
  package static let ones = UUID(high: .max, low: .max)

  /// Whether this is one of the two that are nobody's identifier.
  package var isPlaceholder: Bool { self == .zero || self == .ones }

  /// The sixteen bytes, most significant first.
  package var bytes: [UInt8] {
    [high, low].flatMap { half in (0..<8).map { UInt8(truncatingIfNeeded: half >> UInt64(56 - 8 * $0)) } }
  }

  /// Sets the version and variant bits over 128 random or hashed bits (RFC 9562, sections 4.1 and 4.2).
  package func stamped(version: UInt64) -> UUID {
    UUID(
      high: high & 0xffff_ffff_ffff_0fff | version << 12,
      low: low & 0x3fff_ffff_ffff_ffff | 0x8000_0000_0000_0000)
  }
}

// MARK: - Text

extension UUID {
  /// The length of the canonical form, in bytes.
  package static let textLength = 36

  /// Reads 32 hexadecimal digits, or 36 characters with hyphens at 8, 13, 18 and 23; either case.
  ///
  /// Nothing else is a UUID here: no braces, no `urn:uuid:`, no white space around it.
  /// Returns nil for anything else.
  package init?(parsing text: borrowing Span<UInt8>) {
    guard text.count == 32 || text.count == Self.textLength else { return nil }
    let hyphenated = text.count == Self.textLength
    var bits: (high: UInt64, low: UInt64) = (0, 0)
    for index in text.indices {
      if hyphenated, index == 8 || index == 13 || index == 18 || index == 23 {
        guard text[index] == UInt8(ascii: "-") else { return nil }
        continue
      }
      guard let digit = hexadecimalDigit(text[index]) else { return nil }
      bits.high = bits.high << 4 | bits.low >> 60
      bits.low = bits.low << 4 | UInt64(digit)
    }
    self.init(high: bits.high, low: bits.low)
  }

  /// Reads a UUID from text; nil when it is none.
  package init?(_ text: Text) { self.init(parsing: text.bytes.span) }

  /// Appends the canonical form: 36 bytes, lower case, with hyphens.
  package func append(to output: inout [UInt8]) {
    // In one piece: an array is looked at with each byte that it takes by itself.
    output.append(addingCapacity: Self.textLength) { append(to: &$0) }
  }

  /// The same, where there is room.
  package func append(to text: inout OutputSpan<UInt8>) {
    Self.append(high >> 32, digits: 8, to: &text)
    text.append(UInt8(ascii: "-"))
    Self.append(high >> 16, digits: 4, to: &text)
    text.append(UInt8(ascii: "-"))
    Self.append(high, digits: 4, to: &text)
    text.append(UInt8(ascii: "-"))
    Self.append(low >> 48, digits: 4, to: &text)
    text.append(UInt8(ascii: "-"))
    Self.append(low, digits: 12, to: &text)
  }

  /// Appends the last digits of a word.
  @inline(__always)
  private static func append(_ word: UInt64, digits: Int, to text: inout OutputSpan<UInt8>) {
    var shift = UInt64(4 * digits)
    while shift > 0 {
      shift -= 4
      let digit = UInt8(truncatingIfNeeded: word >> shift) & 0xf
      text.append(digit &+ (digit < 10 ? UInt8(ascii: "0") : UInt8(ascii: "a") - 10))
    }
  }
}

extension Text {
  /// The canonical form.
  package init(_ uuid: UUID) {
    var bytes: [UInt8] = []
    uuid.append(to: &bytes)
    self.init(trusted: bytes)
  }
}

extension UUID: CustomStringConvertible {
  /// The canonical form.
  package var description: String {
    var bytes: [UInt8] = []
    append(to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }
}

/// The value of one hexadecimal digit in either case, or nil.
package func hexadecimalDigit(_ byte: UInt8) -> UInt8? {
  switch byte {
  case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
  case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
  case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
  default: nil
  }
}
