import Foundation
import IdentityCore
import IdentityStore
import TestSupport
import Testing

/// The guarded memory, which encrypts received secrets and decrypts them for output.
struct SecretMemoryTests {
  /// Runs `body` with the memory of a store that lives until `body` returns.
  private func withMemory(_ body: (SecretMemory, borrowing Store) throws -> Void) throws {
    let workspace = try Workspace(inMemory: true)
    try workspace.withStore { store, _ in try body(try store.makeSecretMemory(), store) }
  }

  static let good: [(String, [UInt8])] = [
    ("", []), ("QQ==", [0x41]), ("QQ", [0x41]), ("QUI=", [0x41, 0x42]), ("QUI", [0x41, 0x42]),
    ("QUJD", [0x41, 0x42, 0x43]), ("AAAA", [0, 0, 0]), ("/+//", [0xff, 0xef, 0xff]), ("AA==", [0]), ("AA", [0]),
    ("QUJDRA==", Array("ABCD".utf8)), ("QUJDRA", Array("ABCD".utf8)),
  ]

  @Test func `Base64 is accepted with and without padding`() throws {
    try withMemory { memory, _ in
      for (text, secret) in Self.good {
        let sealed = try memory.encrypt(text: Array(text.utf8))
        #expect(sealed.length == secret.count, "\(text)")
        let opened = try memory.decrypt(sealed)
        #expect(opened == secret, "\(text)")
      }
    }
  }

  static let bad = [
    "Q", "QQ=", "QQ===", "=", "==", "====", "QUJD=", "QUJD==", "QUI==", "QUJDR", "QUJDR===", "QQ==QQ==", "Q=Q=", "QU=J",
    // The unused bits must be zero.
    "QR==", "QR", "QUJ=", "QUJDQf==",
    "Q Q=", " QQ==", "QQ== ", "QUJD\n", "\nQUJD", "QU\r\nJD", "-_-_", "QUJ*", "QUJé", "Q\0Q=", "QUJD\0", "\u{feff}QUJD",
    "data:QUJD", "%51%51==",
  ]

  @Test(arguments: bad) func `text that is not Base64 is refused`(text: String) throws {
    try withMemory { memory, _ in
      #expect(throws: SecretFault.notBase64) { try memory.encrypt(text: Array(text.utf8)) }
      // The memory still works afterwards.
      let secret = try memory.decrypt(memory.encrypt(text: Array("QUJD".utf8)))
      #expect(secret == Array("ABC".utf8))
    }
  }

  @Test func `a secret has at most 64 KiB, with and without padding`() throws {
    try withMemory { memory, _ in
      for length in [
        Bound.secretLength - 1, Bound.secretLength, Bound.secretLength + 1, Bound.secretLength + 2, 70_000,
      ] {
        let secret = sampleSecret(1, length: length)
        let padded = Array(Data(secret).base64EncodedString().utf8)
        for text in [padded, Array(padded.prefix { $0 != UInt8(ascii: "=") })] {
          try #require(text.count <= Bound.lineLength)
          if length <= Bound.secretLength {
            let opened = try memory.decrypt(memory.encrypt(text: text))
            #expect(opened == secret)
          } else {
            #expect(throws: SecretFault.tooLong, "\(length)") { try memory.encrypt(text: text) }
          }
        }
      }
    }
  }

  @Test func `a full line of Base64 is too long, and so is a longer length that is claimed`() throws {
    try withMemory { memory, _ in
      for count in [0, 1, Bound.lineLength] {
        #expect(throws: SecretFault.tooLong) {
          try memory.encrypt { span in
            for index in span.indices { span[index] = UInt8(ascii: "A") }
            return span.count + count
          }
        }
      }
    }
  }

  @Test(arguments: [32_765, 32_766, 32_767, 32_768])
  func `an error within a secret that is not too long is reported as not Base64`(length: Int) throws {
    try withMemory { memory, _ in
      var text = Array(Data(sampleSecret(1, length: length)).base64EncodedString().utf8)
      text[100] = UInt8(ascii: "*")
      #expect(throws: SecretFault.notBase64) { try memory.encrypt(text: text) }
    }
  }

  @Test func `the text of a request does not stay in the memory`() throws {
    try withMemory { memory, _ in
      func encrypt(_ text: String) throws -> Bool {
        var isClean = true
        _ = try? memory.encrypt { span in
          for index in span.indices where span[index] != 0 { isClean = false }
          for (index, byte) in text.utf8.enumerated() { span[index] = byte }
          return text.utf8.count
        }
        return isClean
      }
      _ = try encrypt("")
      for text in ["QUJDREVGR0g=", "not Base64", String(repeating: "QUJD", count: 16_000)] {
        _ = try encrypt(text)
        let isClean = try encrypt("")
        #expect(isClean, "\(text.prefix(20))")
      }
    }
  }

  @Test func `a secret is encrypted to different bytes each time and is not visible in them`() throws {
    try withMemory { memory, _ in
      let secret = [UInt8](repeating: 0x53, count: 64)
      let all = try (0..<50).map { _ in try memory.encrypt(secret).bytes }
      #expect(Set(all).count == all.count)
      #expect(Set(all.map { $0.prefix(24) }).count == all.count, "the nonces")
      for sealed in all { #expect(Data(sealed).range(of: Data(secret.prefix(8))) == nil) }
    }
  }

  @Test func `an encrypted secret opens only unchanged and in this process`() throws {
    try withMemory { memory, store in
      let secret = sampleSecret(1, length: 40)
      let sealed = try memory.encrypt(secret)
      let another = try store.makeSecretMemory()
      let opened = try another.decrypt(sealed)
      #expect(opened == secret, "every thread of the process")
      var changed = (0..<(8 * sealed.bytes.count)).map { bit in
        var bytes = sealed.bytes
        bytes[bit / 8] ^= 1 << UInt8(bit % 8)
        return bytes
      }
      changed += (0..<sealed.bytes.count).map { Array(sealed.bytes.prefix($0)) }
      changed += [sealed.bytes + [0], Array(sealed.bytes.dropFirst()), Array(sealed.bytes.reversed())]
      for bytes in changed {
        var text = Array("before".utf8)
        let isOpened = memory.append(SealedSecret(bytes: bytes, length: secret.count), as: .base64, to: &text)
        #expect(!isOpened)
        #expect(text == Array("before".utf8), "nothing is appended")
      }
      let workspace = try Workspace(inMemory: true)
      try workspace.withStore { other, _ in
        var text: [UInt8] = []
        let isOpened = try other.makeSecretMemory().append(sealed, as: .base64, to: &text)
        #expect(!isOpened && text == [])
        // A change with such a secret is not stored, and neither is the rest of its batch.
        let change = Change.itemStored(Known(1, length: 40).item, sealed, .added)
        guard case .unwritable = other.commit([deviceMade, change]) else {
          Issue.record("stored")
          return
        }
        let healed = other.heal()
        #expect(healed == Registry())
      }
    }
  }

  @Test func `too many bytes are refused like any bytes that were not encrypted here`() async {
    // Runs in a separate process, because a failure would end this one.
    await #expect(processExitsWith: .success) {
      let workspace = try Workspace(inMemory: true)
      try workspace.withStore { store, _ in
        let memory = try store.makeSecretMemory()
        for count in [Bound.secretLength + 41, Bound.secretLength + 42, 50_000, 1_000_000] {
          let secret = SealedSecret(bytes: [UInt8](repeating: 1, count: count), length: 5)
          var text: [UInt8] = []
          guard !memory.append(secret, as: .base64, to: &text), text == [] else { throw Failure("opened") }
          guard refusal({ _ = try store.identifier(in: secret) }) != nil else { throw Failure("a UUID") }
          guard store.commit([.itemStored(sampleItem(1), secret, .added)]) != nil else { throw Failure("stored") }
          guard store.heal() != nil else { throw Failure("not healed") }
        }
      }
    }
  }

  @Test func `a secret that contains a UUID is read as that UUID`() throws {
    let workspace = try Workspace(inMemory: true)
    try workspace.withStore { store, _ in
      let memory = try store.makeSecretMemory()
      let text = "557E5958-d390-4cbf-b928-2a2b19a1399a"
      for ends in [("", ""), ("", "\n"), (" \t", "\r\n"), ("\0", "\0"), (String(repeating: " ", count: 30_000), " ")] {
        let value = try store.identifier(in: memory.encrypt(Array((ends.0 + text + ends.1).utf8)))
        #expect(value == IdentityCore.UUID(Text(text)))
      }
      for text in ["", " \n", "557e5958", text + "0", text.replacing("-", with: " "), text + " x", "\u{a0}" + text] {
        let sealed = try memory.encrypt(Array(text.utf8))
        #expect(refusal { _ = try store.identifier(in: sealed) } == .invalidUUID("(the secret of the item)"), "\(text)")
      }
    }
  }
}
