import Foundation
import LinuxSystem
import Testing

@testable import ClientSecrets

struct PassphraseTests {
  /// Returns the passphrase that a file with this content holds.
  private func passphrase(_ content: some Sequence<UInt8>) throws -> Passphrase {
    try Passphrase(from: try file(content))
  }

  private func file(_ content: some Sequence<UInt8>) throws -> InputFile {
    let place = FileManager.default.temporaryDirectory.appending(path: "identity-passphrase-\(UUID().uuidString)")
    try Data(content).write(to: place)
    defer { try? FileManager.default.removeItem(at: place) }
    return try InputFile(path: place.path)
  }

  private func key(_ passphrase: borrowing Passphrase, _ operations: Int, _ memory: Int, _ salt: [UInt8]) throws
    -> String
  {
    try passphrase.key(for: BackupHeader(operations: operations, memory: memory, salt: salt)).withBytes { bytes in
      bytes.indices.map { (bytes[$0] < 16 ? "0" : "") + String(bytes[$0], radix: 16) }.joined()
    }
  }

  /// The keys were computed with the reference implementation (argon2-cffi 25.1: hash_secret_raw, one lane, Type.ID).
  @Test(
    arguments: [
      (
        1, 8_192, "correct horse battery staple", Array(0...15),
        "d17ea6341ca93da6079ea2f64dc4aa31dd1aaf9caa67fb42ac4afd0714706f26"
      ),
      (
        3, 65_536, "p\u{e4}ssw\u{f6}rd\u{1} ", [UInt8](repeating: 255, count: 16),
        "4b75404e210dd73443bb77b562ffb3160ab86c1e13a157e11f9da8f761fc9155"
      ),
      (
        10, 1_048_576, String(repeating: "p", count: 1_024), [UInt8](repeating: 0, count: 16),
        "5e430dc669b7a1ff8d68b472e03f6bc1a9e3ad43e04f4f2037c48b7d36439fd2"
      ),
      (3, 268_435_456, "x", Array(0...15), "211f6e84240b3804d4fae56fbda8faaa4adcf2a1fee946ecce7479b2d6479425"),
    ] as [(Int, Int, String, [UInt8], String)])
  func `the key is Argon2id's`(operations: Int, memory: Int, text: String, salt: [UInt8], expected: String) throws {
    #expect(try key(passphrase(text.utf8), operations, memory, salt) == expected)
  }

  @Test func `equal inputs yield the same key, and different inputs different keys`() throws {
    let salt = [UInt8](repeating: 1, count: 16)
    let keys = [
      try key(passphrase("secret".utf8), 1, 8_192, salt), try key(passphrase("secret\nx".utf8), 1, 8_192, salt),
      try key(passphrase("secrets".utf8), 1, 8_192, salt), try key(passphrase("secret\r".utf8), 1, 8_192, salt),
      try key(passphrase("secret\u{0}".utf8), 1, 8_192, salt), try key(passphrase("secret".utf8), 2, 8_192, salt),
      try key(passphrase("secret".utf8), 1, 16_384, salt),
      try key(passphrase("secret".utf8), 1, 8_192, [2] + salt.dropFirst()),
    ]
    #expect(keys[0] == keys[1])
    #expect(Set(keys).count == keys.count - 1)
  }

  @Test(
    arguments: [
      ("", .empty), ("\n", .empty), ("\nsecret\n", .empty),
      (String(repeating: "x", count: 1_025), .tooLong), (String(repeating: "x", count: 1_025) + "\n", .tooLong),
      (String(repeating: "x", count: 100_000), .tooLong),
    ] as [(String, Passphrase.Failure)])
  func `an empty or too long passphrase is refused`(content: String, failure: Passphrase.Failure) {
    #expect(throws: failure) {
      let refused = try passphrase(content.utf8)
      _ = refused.matches(refused)
    }
  }

  @Test func `the longest passphrase is accepted, with and without a line end`() throws {
    let longest = String(repeating: "x", count: 1_024)
    let one = try passphrase(longest.utf8)
    let other = try passphrase("\(longest)\n\(longest)".utf8)
    let isSame = one.matches(other)
    #expect(isSame)
  }

  @Test func `passphrases are compared in their composed form`() throws {
    let one = try passphrase("\u{e9}".utf8)
    for (text, expected) in [
      ("\u{e9}", true), ("e\u{301}", true), ("\u{e9} ", false), ("\u{ea}", false), ("e", false),
      // Compatibility is another relation: a fullwidth letter, and letters of another height.
      ("\u{ff45}\u{301}", false), ("\u{1d49}\u{301}", false),
    ] {
      let isSame = one.matches(try passphrase(text.utf8))
      #expect(isSame == expected, "\(text)")
    }
  }

  /// From NormalizationTest.txt of Unicode 15.0, columns 1 and 2: a singleton, an exclusion from composition, Hangul,
  /// marks in another order, a mark that is blocked.
  @Test(
    arguments: [
      ("\u{212b}", "\u{c5}"), ("\u{958}", "\u{915}\u{93c}"), ("\u{1112}\u{1161}\u{11ab}", "\u{d55c}"),
      ("q\u{307}\u{323}", "q\u{323}\u{307}"), ("d\u{307}\u{323}", "\u{1e0d}\u{307}"),
      ("\u{fb2c}", "\u{5e9}\u{5bc}\u{5c1}"), ("\u{1d160}", "\u{1d158}\u{1d165}\u{1d16e}"),
    ])
  func `both forms of a passphrase have the key of the composed form, and the entered one its own`(
    entered: String, composed: String
  ) throws {
    let header = BackupHeader(operations: 1, memory: 8_192, salt: Array(repeating: 7, count: 16))
    let content: [UInt8] = [1, 2, 3]
    let sealed = try passphrase(composed.utf8).key(for: header).seal(content.span)
    #expect(try passphrase(entered.utf8).key(for: header).open(sealed) == content)
    let keys = try passphrase(entered.utf8).keys(for: header)
    #expect(keys.open(sealed) == content)
    // The key with which an earlier release sealed.
    guard let former = try keys.formerSealed(content) else {
      Issue.record("there is no key of the entered form")
      return
    }
    #expect(keys.open(former) == content)
    #expect(try passphrase(composed.utf8).keys(for: header).open(former) == nil)
    let hasFormer = try passphrase(composed.utf8).keys(for: header).formerSealed(content) != nil
    #expect(!hasFormer)
  }

  @Test(
    arguments: [
      Array("caf\u{e9} \u{1f511}".utf8), [0xff, 0xfe, 0x41], Array("e\u{301}".utf8) + [0x80], [0xc3],
      [0xed, 0xa0, 0x80], Array("plain".utf8),
    ])
  func `a passphrase that is composed or is not UTF-8 has the key of its bytes alone`(bytes: [UInt8]) throws {
    let keys = try passphrase(bytes).keys(for: BackupHeader(operations: 1, memory: 8_192, salt: Array(0...15)))
    let hasFormer = try keys.formerSealed([1]) != nil
    #expect(!hasFormer)
  }

  @Test func `the longest passphrase may grow when it is composed`() throws {
    // Four bytes each become twelve.
    let longest = String(repeating: "\u{1d160}", count: 256)
    let keys = try passphrase(longest.utf8).keys(for: BackupHeader(operations: 1, memory: 8_192, salt: Array(0...15)))
    let hasFormer = try keys.formerSealed([1]) != nil
    #expect(hasFormer)
  }

  @Test func `only the first line of the file is read`() throws {
    let file = try file("secret\nrest".utf8)
    let read = try Passphrase(from: file)
    let isSame = read.matches(try passphrase("secret".utf8))
    #expect(isSame)
    var rest = [UInt8](repeating: 0, count: 10)
    #expect(try file.fill(&rest) == 4)
    #expect(rest.prefix(4) == Array("rest".utf8)[...])
  }

  @Test func `an unreadable file is reported`() throws {
    #expect {
      let refused = try Passphrase(from: try InputFile(path: "/"))
      _ = refused.matches(refused)
    } throws: { error in
      guard case .unreadable(let why)? = error as? Passphrase.Failure else { return false }
      return why.contains("Is a directory")
    }
  }

  @Test func `only the key of the passphrase opens sealed bytes, and only unaltered ones`() throws {
    let header = BackupHeader(operations: 1, memory: 8_192, salt: Array(repeating: 7, count: 16))
    let key = try passphrase("correct horse".utf8).key(for: header)
    let content: [UInt8] = [1, 2, 3]
    let sealed = key.seal(content.span)
    #expect(key.open(sealed) == content)
    #expect(key.seal(content.span) != sealed, "the nonce is random")
    #expect(try passphrase("wrong horse".utf8).key(for: header).open(sealed) == nil)
    for place in sealed.indices {
      var altered = sealed
      altered[place] ^= 1
      #expect(key.open(altered) == nil, "byte \(place)")
    }
    #expect(key.open([]) == nil && key.open(Array(sealed.dropLast())) == nil)
  }
}

extension BackupKeys {
  /// Returns bytes that were sealed with the key of the entered form; nil if that form is the composed one.
  fileprivate func formerSealed(_ content: [UInt8]) throws -> [UInt8]? {
    switch former {
    case .some(let former): former.seal(content.span)
    case nil: nil
    }
  }
}
