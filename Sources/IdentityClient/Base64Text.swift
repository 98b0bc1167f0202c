package import IdentityCore
import LinuxSystem

/// Base64 in the form of the protocol: RFC 4648, section 4, with padding.
///
/// The client links nothing but the C library, so libsodium is not available. Characters are computed and not looked
/// up in a table, because the cache lines of a table would leak the secret.
package enum Base64Text {
  /// Returns the length of the text for a number of bytes.
  static func length(of count: Int) -> Int { (count + 2) / 3 * 4 }

  /// Appends the text for the bytes. The array is not reallocated if its capacity suffices.
  package static func append(_ bytes: borrowing Span<UInt8>, to text: inout [UInt8]) {
    var index = 0
    while index < bytes.count {
      let rest = min(3, bytes.count - index)
      var group = UInt32(bytes[index]) << 16
      if rest > 1 { group |= UInt32(bytes[index + 1]) << 8 }
      if rest > 2 { group |= UInt32(bytes[index + 2]) }
      for digitIndex in 0..<4 {
        let digit = UInt8(group >> UInt32(18 - 6 * digitIndex) & 63)
        text.append(digitIndex <= rest ? character(for: digit) : UInt8(ascii: "="))
      }
      index += 3
    }
  }

  /// Returns the text for bytes that are no secret.
  package static func encoded(_ bytes: [UInt8]) -> Text {
    var text: [UInt8] = []
    append(bytes.span, to: &text)
    return Text(trusted: text)
  }

  /// Decodes a text. The caller must wipe the bytes.
  ///
  /// - Returns: Nil if the text is not Base64, or if its unused bits are not zero.
  package static func decode(_ text: borrowing Span<UInt8>) -> [UInt8]? {
    guard text.count % 4 == 0 else { return nil }
    var padding = 0
    while padding < 2, padding < text.count, text[text.count - 1 - padding] == UInt8(ascii: "=") { padding += 1 }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count / 4 * 3)
    var group: UInt32 = 0
    var invalid: UInt32 = 0
    for index in 0..<(text.count - padding) {
      let digit = digit(for: text[index])
      invalid |= digit & 64
      group = group << 6 | digit & 63
      if index % 4 == 3 {
        bytes.append(UInt8(group >> 16 & 255))
        bytes.append(UInt8(group >> 8 & 255))
        bytes.append(UInt8(group & 255))
        group = 0
      }
    }
    switch padding {
    case 1:
      invalid |= group & 3
      bytes.append(UInt8(group >> 10 & 255))
      bytes.append(UInt8(group >> 2 & 255))
    case 2:
      invalid |= group & 15
      bytes.append(UInt8(group >> 4 & 255))
    default: break
    }
    guard invalid == 0 else {
      bytes.wipe()
      return nil
    }
    return bytes
  }

  /// Decodes the one line that follows the first line of a file. The caller must wipe the bytes.
  ///
  /// - Parameter head: the first line with its line feed.
  /// - Returns: Nil if the text has another form.
  package static func decode(_ text: borrowing Span<UInt8>, after head: String) -> [UInt8]? {
    let head = Array(head.utf8)
    guard text.count > head.count else { return nil }
    for index in head.indices where text[index] != head[index] { return nil }
    let end = text.count - (text[text.count - 1] == UInt8(ascii: "\n") ? 1 : 0)
    return decode(text.extracting(head.count..<end))
  }

  /// Returns the character for a digit from 0 to 63.
  private static func character(for digit: UInt8) -> UInt8 {
    let value = Int32(digit)
    var character = value + 65
    character += atLeast(value, 26) & 6
    character -= atLeast(value, 52) & 75
    character -= atLeast(value, 62) & 15
    character += atLeast(value, 63) & 3
    return UInt8(truncatingIfNeeded: character)
  }

  /// Returns the digit of a character; 64 if it is not a Base64 character.
  private static func digit(for character: UInt8) -> UInt32 {
    let value = Int32(character)
    var digit: Int32 = 64
    digit += within(value, 65, 90) & (value - 65 - 64)
    digit += within(value, 97, 122) & (value - 71 - 64)
    digit += within(value, 48, 57) & (value + 4 - 64)
    digit += within(value, 43, 43) & (62 - 64)
    digit += within(value, 47, 47) & (63 - 64)
    return UInt32(truncatingIfNeeded: digit)
  }

  /// Returns a mask of all bits if the value is at least the bound, else 0.
  private static func atLeast(_ value: Int32, _ bound: Int32) -> Int32 { (bound - 1 - value) >> 31 }

  private static func within(_ value: Int32, _ low: Int32, _ high: Int32) -> Int32 {
    atLeast(value, low) & ~atLeast(value, high + 1)
  }
}
