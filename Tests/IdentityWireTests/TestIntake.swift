import Foundation
import IdentityCore

/// Takes secrets in as the store does, but hides nothing: what it "seals" is the secret turned round.
final class TestIntake: SecretIntake {
  /// The Base64 that came, one text a secret.
  private(set) var texts: [String] = []
  /// How much of a text it takes.
  private let room: Int

  /// Makes an intake that takes as much as the store's, or less.
  init(room: Int = Bound.lineLength) { self.room = room }

  func seal(_ fill: (inout MutableSpan<UInt8>) -> Int) throws(SecretFault) -> SealedSecret {
    var memory = [UInt8](repeating: 0, count: room)
    var span = memory.mutableSpan
    let length = fill(&span)
    texts.append(String(decoding: memory[..<length], as: UTF8.self))
    guard let secret = Data(base64Encoded: Data(memory[..<length])) else { throw .notBase64 }
    guard secret.count <= Bound.secretLength else { throw .tooLong }
    return SealedSecret(bytes: secret.reversed(), length: secret.count)
  }
}

/// A secret as the test's intake seals it.
func sealed(_ secret: String) -> SealedSecret {
  SealedSecret(bytes: secret.utf8.reversed(), length: secret.utf8.count)
}
