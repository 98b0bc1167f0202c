import IdentityCore

/// Accepts secrets without encrypting them, with the simplest decoder for RFC 4648: four characters are three bytes.
struct PlainIntake: SecretIntake {
  func encrypt(_ fill: (inout MutableSpan<UInt8>) -> Int) throws(SecretFault) -> SealedSecret {
    var memory = [UInt8](repeating: 0, count: Bound.lineLength)
    var span = memory.mutableSpan
    let length = fill(&span)
    let secret = try Self.decode(memory[..<length])
    guard secret.count <= Bound.secretLength else { throw .tooLong }
    return SealedSecret(bytes: secret, length: secret.count)
  }

  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  static func decode(_ text: ArraySlice<UInt8>) throws(SecretFault) -> [UInt8] {
    var digits = text
    while digits.last == UInt8(ascii: "="), text.count - digits.count < 2 { digits.removeLast() }
    guard digits.count == text.count || text.count % 4 == 0, digits.count % 4 != 1 else { throw .notBase64 }
    var bytes: [UInt8] = []
    var bits = 0
    var count = 0
    for character in digits {
      guard let digit = alphabet.firstIndex(of: character) else { throw .notBase64 }
      bits = (bits << 6 | digit) & 0xffff
      count += 6
      if count >= 8 {
        count -= 8
        bytes.append(UInt8(truncatingIfNeeded: bits >> count))
      }
    }
    // The remaining bits must be zero, so that each secret has one encoding.
    guard bits & (1 << count - 1) == 0 else { throw .notBase64 }
    return bytes
  }
}
