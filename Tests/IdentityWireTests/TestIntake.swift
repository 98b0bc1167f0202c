import Foundation
import IdentityCore

/// Accepts secrets as the store does, but hides nothing: an "encrypted" secret is the reversed secret.
final class TestIntake: SecretIntake {
  /// The received Base64 texts, one for each secret.
  private(set) var texts: [String] = []
  /// The number of bytes that the intake accepts for a text.
  private let room: Int

  /// Creates an intake that accepts as much as the store's, or less.
  init(room: Int = Bound.lineLength) { self.room = room }

  func encrypt(_ fill: (inout MutableSpan<UInt8>) -> Int) throws(SecretFault) -> SealedSecret {
    var memory = [UInt8](repeating: 0, count: room)
    var span = memory.mutableSpan
    let length = fill(&span)
    texts.append(String(decoding: memory[..<length], as: UTF8.self))
    guard let secret = Data(base64Encoded: Data(memory[..<length])) else { throw .notBase64 }
    guard secret.count <= Bound.secretLength else { throw .tooLong }
    return SealedSecret(bytes: secret.reversed(), length: secret.count)
  }
}

/// Returns a secret as ``TestIntake`` encrypts it.
func sealed(_ secret: String) -> SealedSecret {
  SealedSecret(bytes: secret.utf8.reversed(), length: secret.utf8.count)
}
