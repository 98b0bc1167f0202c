import CSodium

/// Base64 with the alphabet for URLs and without padding (RFC 7515, section 2).
enum Base64URL {
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

  /// Returns the text of bytes.
  static func text(_ bytes: some Collection<UInt8>) -> String {
    var text: [UInt8] = []
    append(Array(bytes).span, to: &text)
    return String(decoding: text, as: UTF8.self)
  }

  /// Appends the text of bytes.
  ///
  /// Nothing in a proof is secret, so the time may depend on the bytes. libsodium, which takes the same for all, needs
  /// several times as many instructions.
  static func append(_ bytes: Span<UInt8>, to text: inout [UInt8]) {
    let letters = alphabet.span
    let start = text.count
    let wholes = bytes.count / 3
    text.append(contentsOf: repeatElement(0, count: (bytes.count * 4 + 2) / 3))
    var output = text.mutableSpan
    for whole in 0..<wholes {
      let (offset, next) = (3 * whole, start + 4 * whole)
      let group = Int(bytes[offset]) << 16 | Int(bytes[offset + 1]) << 8 | Int(bytes[offset + 2])
      output[next] = letters[group >> 18]
      output[next + 1] = letters[group >> 12 & 63]
      output[next + 2] = letters[group >> 6 & 63]
      output[next + 3] = letters[group & 63]
    }
    let (offset, next) = (3 * wholes, start + 4 * wholes)
    guard offset < bytes.count else { return }
    let hasSecond = offset + 1 < bytes.count
    let group = Int(bytes[offset]) << 8 | (hasSecond ? Int(bytes[offset + 1]) : 0)
    output[next] = letters[group >> 10]
    output[next + 1] = letters[group >> 4 & 63]
    if hasSecond { output[next + 2] = letters[group << 2 & 63] }
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
