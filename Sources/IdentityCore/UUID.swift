/// A universally unique identifier: 128 bits, written in lower case with hyphens (RFC 9562, section 4).
package struct UUID: Hashable, Sendable {
  /// The first eight bytes, most significant first.
  package let high: UInt64
  /// The last eight bytes, most significant first.
  package let low: UInt64

  package init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// The all-zero UUID (RFC 9562, section 5.9): a placeholder that is never an identifier.
  package static let zero = UUID(high: 0, low: 0)

  /// The all-one UUID (RFC 9562, section 5.10), which is never an identifier either.
  package static let ones = UUID(high: .max, low: .max)

  /// Whether the UUID is all zeros or all ones, and so never an identifier.
  package var isPlaceholder: Bool { self == .zero || self == .ones }

  /// The sixteen bytes, most significant first.
  package var bytes: [UInt8] {
    [high, low].flatMap { half in (0..<8).map { UInt8(truncatingIfNeeded: half >> UInt64(56 - 8 * $0)) } }
  }

  /// Returns random or hashed bits with the version and variant bits set (RFC 9562, sections 4.1 and 4.2).
  package func stamped(version: UInt64) -> UUID {
    UUID(
      high: high & 0xffff_ffff_ffff_0fff | version << 12,
      low: low & 0x3fff_ffff_ffff_ffff | 0x8000_0000_0000_0000)
  }
}

extension UUID: Comparable {
  /// Orders by bytes, which is also the order of the texts.
  package static func < (left: UUID, right: UUID) -> Bool { (left.high, left.low) < (right.high, right.low) }
}

// MARK: - Text

extension UUID {
  /// The length of the canonical form, in bytes.
  package static let textLength = 36

  /// The positions of the hyphens, one bit each.
  private static let hyphens: UInt64 = 1 << 8 | 1 << 13 | 1 << 18 | 1 << 23

  /// Parses 32 hexadecimal digits, or 36 characters with hyphens at 8, 13, 18 and 23, in either case.
  ///
  /// Returns nil for any other form: braces, `urn:uuid:` and surrounding white space are rejected.
  package init?(parsing text: borrowing Span<UInt8>) {
    guard text.count == 32 || text.count == Self.textLength else { return nil }
    let hyphenated = text.count == Self.textLength
    var bits: (high: UInt64, low: UInt64) = (0, 0)
    for index in text.indices {
      if hyphenated, Self.hyphens &>> UInt64(index) & 1 == 1 {
        guard text[index] == UInt8(ascii: "-") else { return nil }
        continue
      }
      guard let digit = hexadecimalDigit(text[index]) else { return nil }
      bits.high = bits.high << 4 | bits.low >> 60
      bits.low = bits.low << 4 | UInt64(digit)
    }
    self.init(high: bits.high, low: bits.low)
  }

  /// Parses a UUID from text. Returns nil if the text is not a UUID.
  package init?(_ text: Text) { self.init(parsing: text.bytes.span) }

  /// Appends the canonical form: 36 bytes, lower case, with hyphens.
  package func append(to output: inout [UInt8]) {
    // A single append, because each append checks the array's uniqueness and capacity.
    output.append(addingCapacity: Self.textLength) { append(to: &$0) }
  }

  /// Appends the canonical form to a span that has room for it.
  package func append(to text: inout OutputSpan<UInt8>) {
    let (second, third) = (Self.digits(of: high), Self.digits(of: low >> 32))
    Self.append(Self.digits(of: high >> 32), count: 8, to: &text)
    text.append(UInt8(ascii: "-"))
    Self.append(second >> 32, count: 4, to: &text)
    text.append(UInt8(ascii: "-"))
    Self.append(second, count: 4, to: &text)
    text.append(UInt8(ascii: "-"))
    Self.append(third >> 32, count: 4, to: &text)
    text.append(UInt8(ascii: "-"))
    Self.append(third, count: 4, to: &text)
    Self.append(Self.digits(of: low), count: 8, to: &text)
  }

  /// Returns the hexadecimal digits of the low 32 bits, one in each byte, the most significant one first. Works on all
  /// digits at once: a change writes up to seven UUIDs.
  @inline(__always)
  private static func digits(of word: UInt64) -> UInt64 {
    var digits = word & 0xffff_ffff
    digits = (digits | digits << 16) & 0x0000_ffff_0000_ffff
    digits = (digits | digits << 8) & 0x00ff_00ff_00ff_00ff
    digits = (digits | digits << 4) & 0x0f0f_0f0f_0f0f_0f0f
    let areLetters = (digits &+ 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101
    return digits &+ 0x3030_3030_3030_3030 &+ areLetters &* UInt64(UInt8(ascii: "a") - UInt8(ascii: "0") - 10)
  }

  /// Appends the low bytes of a word, the most significant one first.
  @inline(__always)
  private static func append(_ bytes: UInt64, count: Int, to text: inout OutputSpan<UInt8>) {
    var shift = UInt64(8 * count)
    while shift > 0 {
      shift -= 8
      text.append(UInt8(truncatingIfNeeded: bytes >> shift))
    }
  }
}

extension Text {
  /// Creates text in the canonical form.
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

/// Returns the value of a hexadecimal digit in either case, or nil.
package func hexadecimalDigit(_ byte: UInt8) -> UInt8? {
  switch byte {
  case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
  case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
  case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
  default: nil
  }
}
