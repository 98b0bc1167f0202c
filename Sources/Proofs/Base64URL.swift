import CSodium

/// Base64 with the alphabet for URLs and without padding (RFC 7515, section 2).
enum Base64URL {
  /// Returns the text of bytes.
  static func text(_ bytes: some Collection<UInt8>) -> String {
    let bytes = Array(bytes)
    // With the NUL at its end.
    let room = sodium_base64_encoded_len(bytes.count, sodium_base64_VARIANT_URLSAFE_NO_PADDING)
    var text = [CChar](repeating: 0, count: room)
    _ = unsafe sodium_bin2base64(&text, room, bytes, bytes.count, sodium_base64_VARIANT_URLSAFE_NO_PADDING)
    return String(decoding: text.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
  }

  /// Returns the bytes of a text; nil if it is none, or has bits that say nothing.
  static func bytes(_ text: some Collection<UInt8>) -> [UInt8]? {
    let text = text.map(CChar.init(bitPattern:))
    var bytes = [UInt8](repeating: 0, count: text.count / 4 * 3 + 3)
    var length = 0
    let code = unsafe sodium_base642bin(
      &bytes, bytes.count, text, text.count, nil, &length, nil, sodium_base64_VARIANT_URLSAFE_NO_PADDING)
    return code == 0 ? Array(bytes.prefix(length)) : nil
  }
}
