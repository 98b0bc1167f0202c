import Foundation
import TestSupport
import Testing

/// Forged backups, which no daemon makes. They are encrypted correctly with a known key.
struct ForgedBackup {
  /// A value of a record.
  enum Value {
    case null
    case integer(Int64)
    case text(String)
    case blob([UInt8])
    case secret([UInt8])
    /// Bytes with the type of text that are not valid text.
    case garbled([UInt8])

    fileprivate var bytes: [UInt8] {
      switch self {
      case .null: [2] + Self.number(0)
      case .integer(let number): [3] + Self.number(8) + Self.number(UInt64(bitPattern: number))
      case .text(let text): [4] + Self.number(UInt64(text.utf8.count)) + Array(text.utf8)
      case .blob(let blob): [5] + Self.number(UInt64(blob.count)) + blob
      case .garbled(let bytes): [4] + Self.number(UInt64(bytes.count)) + bytes
      case .secret(let secret): [6] + Self.number(UInt64(secret.count)) + secret
      }
    }

    fileprivate static func number(_ number: UInt64) -> [UInt8] {
      (0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }
  }

  static let time = "2026-11-21T08:39:12.345Z"
  static let head = (kind: "head", values: Self.head(version: 3))
  static func end(_ place: Int64) -> (kind: String, values: [Value]) { ("end", [.integer(place)]) }

  static func head(version: Int64) -> [Value] {
    [.integer(version), .text("9.9"), .text(time), .blob([UInt8](repeating: 1, count: 32)), .null, .null]
  }

  static func item(
    _ account: String, secret: [UInt8] = [1], description: [UInt8] = [0],
    edition: String = "9d2f6a51-9c0f-4b8e-8b3c-5d1e5f0a7c11"
  ) -> (kind: String, values: [Value]) {
    let plain: [Value] = [.integer(1)] + ["user:0", "s", account, "user:0", edition].map { .text($0) }
    return (
      "item",
      plain + [.integer(0), .integer(0), .integer(1), .text(time), .text(time), .blob(description), .secret(secret)]
    )
  }

  static func device(_ value: String, end: Value = .null) -> (kind: String, values: [Value]) {
    (
      "identifier",
      [
        .integer(1), .text("device"), .null, .null, .text(value), .text("random"), .text(time), .text("renewed"), .null,
        end, end.bytes[0] == 2 ? .null : .text("renewed"),
      ]
    )
  }

  /// Encrypts records with ``backupKey``.
  static func encrypt(_ records: [(kind: String, values: [Value])]) throws -> Data {
    var backup = Data()
    for (place, record) in records.enumerated() {
      let name = [1] + Value.number(UInt64(record.kind.utf8.count)) + Array(record.kind.utf8)
      let ciphertext = try encrypt(
        name + record.values.flatMap(\.bytes),
        with: [
          .text("identityd backup"), .integer(Int64(place)), .integer(place == records.count - 1 ? 1 : 0),
          .blob(Array(backup.suffix(16))),
        ])
      backup += (0..<4).map { UInt8(truncatingIfNeeded: ciphertext.count >> (8 * $0)) } + ciphertext
    }
    return backup
  }

  private typealias Encryption =
    @convention(c) (
      UnsafeMutablePointer<UInt8>, UnsafeMutablePointer<UInt64>?, UnsafePointer<UInt8>, UInt64, UnsafePointer<UInt8>,
      UInt64, UnsafePointer<UInt8>?, UnsafePointer<UInt8>, UnsafePointer<UInt8>
    ) -> Int32

  /// Encrypts a message with XChaCha20-Poly1305 from libsodium, the library that the daemon uses.
  private static func encrypt(_ message: [UInt8], with associated: [Value]) throws -> [UInt8] {
    guard let library = unsafe dlopen("libsodium.so.23", RTLD_NOW),
      let symbol = unsafe dlsym(library, "crypto_aead_xchacha20poly1305_ietf_encrypt")
    else { throw Failure("there is no libsodium") }
    let encrypt = unsafe unsafeBitCast(symbol, to: Encryption.self)
    let nonce = (0..<24).map { _ in UInt8.random(in: 0...255) }
    let bytes = associated.flatMap(\.bytes)
    let key = Array(try #require(Data(base64Encoded: backupKey)))
    var ciphertext = [UInt8](repeating: 0, count: message.count + 16)
    let code = unsafe encrypt(
      &ciphertext, nil, message, UInt64(message.count), bytes, UInt64(bytes.count), nil, nonce, key)
    try #require(code == 0)
    return nonce + ciphertext
  }
}

/// Restores of forged backups. A backup is untrusted input even if it opens: an admin may have received it together
/// with its key.
@Suite(.enabled(if: isRoot, "it takes an admin"), .serialized) struct ForgedBackupTests {
  private typealias Forged = ForgedBackup

  /// Expects that a daemon refuses a backup and changes nothing.
  private func expectRefused(
    _ records: [(kind: String, values: [ForgedBackup.Value])], _ what: String, at daemon: DaemonUnderTest
  ) throws {
    let backup = try Forged.encrypt(records)
    let answer = (try? daemon.restore(backup)) ?? ["the daemon is gone"]
    try #require(answer.count == 1 && answer[0].hasPrefix("ERR conflict "), "\(what): \(answer)")
    #expect(try daemon.client().statusValue("last-event") == "1", "\(what)")
  }

  @Test(arguments: [Int64(2), 3, 4, 5, 6])
  func `a backup that is encrypted as a daemon encrypts it is accepted`(version: Int64) throws {
    let daemon = try DaemonUnderTest().start()
    let backup = try Forged.encrypt([
      ("head", Forged.head(version: version)), Forged.item("a", secret: [1, 2, 3]), Forged.end(2),
    ])
    #expect(
      try daemon.restore(backup) == ["* device unknown", "* item added group=user:0 service=s account=a", "OK 2"])
    #expect(try daemon.ask("item read service=s account=a").hasPrefix("OK data=AQID "))
  }

  @Test(arguments: [8, 9, 1_000, Int64.max])
  func `a backup of a later version is refused, and the error says so`(version: Int64)
    throws
  {
    let daemon = try DaemonUnderTest().start()
    for values in [Forged.head(version: version), [.integer(version)], [.integer(version), .secret([1])]] {
      let backup = try Forged.encrypt([("head", values), ("unheard of", []), Forged.end(2)])
      let answer = try daemon.restore(backup)
      #expect(answer.count == 1 && answer[0].hasPrefix("ERR conflict "), "\(answer)")
      if values.count != 2 { #expect(answer[0].contains("later identityd") && answer[0].contains(" \(version),")) }
    }
    #expect(try daemon.client().statusValue("last-event") == "1")
  }

  @Test(arguments: [
    "account", "app", "identifier", "device", "fleet", "record", "release", "report", "claim", "token", "item", "end",
    "head",
    "unheard of",
  ])
  func `a record with a wrong number or wrong types of columns is refused`(kind: String) throws {
    let daemon = try DaemonUnderTest().start()
    for values in [
      [], [.null], [.integer(-1)], [.text("")], [Forged.Value](repeating: .null, count: 5),
      [Forged.Value](repeating: .null, count: 7), [Forged.Value](repeating: .text("x"), count: 7),
      [Forged.Value](repeating: .integer(1), count: 7), [Forged.Value](repeating: .null, count: 8),
      [Forged.Value](repeating: .null, count: 11),
      [Forged.Value](repeating: .null, count: 12), [Forged.Value](repeating: .text("x"), count: 8),
      [Forged.Value](repeating: .text("x"), count: 11), [Forged.Value](repeating: .blob([]), count: 12),
      [Forged.Value](repeating: .integer(1), count: 40),
    ] as [[Forged.Value]] {
      try expectRefused([Forged.head, (kind, values), Forged.end(2)], "\(kind) \(values)", at: daemon)
      if kind == "item" {
        try expectRefused(
          [Forged.head, (kind, values + [.secret([1])]), Forged.end(2)], "\(kind) \(values), secret", at: daemon)
      }
    }
  }

  @Test func `a backup without exactly one head first and one correct end last is refused`() throws {
    let daemon = try DaemonUnderTest().start()
    try expectRefused([Forged.end(0)], "no head", at: daemon)
    try expectRefused([Forged.head], "no end", at: daemon)
    try expectRefused([Forged.head, Forged.end(7)], "another number", at: daemon)
    try expectRefused([Forged.head, Forged.head, Forged.end(2)], "two heads", at: daemon)
    try expectRefused([Forged.item("a"), Forged.head, Forged.end(2)], "an item first", at: daemon)
    try expectRefused([("head", Forged.head(version: 0)), Forged.end(1)], "version 0", at: daemon)
    try expectRefused(
      [Forged.head, Forged.item("a", secret: [UInt8](repeating: 1, count: 65_537)), Forged.end(2)], "long", at: daemon)
    try expectRefused(
      [Forged.head, Forged.end(1), Forged.item("a"), Forged.end(3)], "something behind the end", at: daemon)
  }

  @Test func `the nil and max UUIDs are not restored as the device identifier`() throws {
    for value in ["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"] {
      let daemon = try DaemonUnderTest().start()
      _ = try daemon.restore(
        try Forged.encrypt([Forged.head, Forged.device(value), Forged.end(2)]), "adopt-device=yes")
      #expect(try !daemon.ask("get device").contains(value))
    }
  }

  @Test func `a description that is not text cannot break a line of an answer`() throws {
    for description in [[0xff, 0xfe, 0], [0x61, 0, 0x80, 0, 0x62, 0], [0x0a, 0]] as [[UInt8]] {
      let daemon = try DaemonUnderTest().start()
      _ = try daemon.restore(
        try Forged.encrypt([Forged.head, Forged.item("a", description: description), Forged.end(2)]))
      let client = try daemon.client()
      let found = try client.ask("item find")
      #expect(found.count <= 2 && !found.joined().contains("\u{fffd}"), "\(found)")
      #expect(try client.ask("ping") == ["OK"])
    }
  }

  @Test func `duplicate items, editions and devices in a backup do no harm`() throws {
    let daemon = try DaemonUnderTest().start()
    let devices = [
      Forged.device("557e5958-d390-4cbf-b928-2a2b19a1399a"), Forged.device("557e5958-d390-4cbf-b928-2a2b19a1399b"),
    ]
    let ended = Forged.device("557e5958-d390-4cbf-b928-2a2b19a1399c", end: .text(Forged.time))
    let listed: (kind: String, values: [Forged.Value]) = (
      "device", [.integer(1), .text("557e5958-d390-4cbf-b928-2a2b19a1399d"), .null, .null, .text(Forged.time)]
    )
    let items = [
      Forged.item("a", secret: [1]), Forged.item("a", secret: [2], edition: "9d2f6a51-9c0f-4b8e-8b3c-5d1e5f0a7c12"),
      Forged.item("b", secret: [3]),
    ]
    let records = [Forged.head] + devices + [ended, ended, listed, listed] + items
    let backup = try Forged.encrypt(records + [Forged.end(Int64(records.count))])
    let answer = try daemon.restore(backup, "adopt-device=yes").last ?? ""
    let found = try daemon.client().ask("item find")
    for _ in 0..<2 {
      daemon.end(with: SIGKILL)
      try daemon.start()
      #expect(try daemon.client().statusValue("store") == "ok", "\(answer)")
      #expect(try daemon.client().ask("item find") == found)
    }
    #expect(try daemon.ask("devices").hasPrefix("OK "))
  }
}
