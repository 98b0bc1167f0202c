import Foundation
import IdentityCore
import TestSupport
import Testing

/// Malformed and extreme bytes, which no well-behaved client sends.
struct HostileByteTests {
  let daemon: DaemonUnderTest

  init() throws { daemon = try DaemonUnderTest().start() }

  @Test func `row 21: 100 unterminated lines at once stay within their memory bound and delay nobody`() throws {
    let daemon = try DaemonUnderTest(of: DaemonUnderTest.released).start()
    // Makes the baseline include the cost of one long line.
    _ = try daemon.client().ask("check " + String(repeating: "a", count: 65_000))
    let before = try daemon.peakMemory()
    let clients = try (0..<100).map { _ in try daemon.client() }
    for client in clients { try client.send([UInt8](repeating: 0x61, count: Bound.lineLength - 1)) }
    for _ in 0..<20 { #expect(try daemon.ask("ping") == "OK") }
    for client in clients {
      // Sending may fail, because the daemon discards only a bounded amount of input after the refusal.
      try? client.send([UInt8](repeating: 0x61, count: 1_000_000))
      #expect(try client.line()?.hasPrefix("ERR too-long ") == true)
    }
    #expect(try daemon.ask("ping") == "OK")
    // Allows three line lengths for each client: the line, and the spare capacity of growing arrays.
    #expect(try daemon.peakMemory() - before < 100 * 3 * Bound.lineLength)
  }

  /// Requests, and the beginnings of their replies.
  private static let shapes: [(bytes: String, replies: [String])] = [
    ("", []), ("\n", []), ("\r\n", []), ("\n\n\r\n\n", []), ("\r\r\n", ["ERR syntax "]), ("\rping\n", ["ERR syntax "]),
    (" \n", ["ERR syntax "]), ("   \r\n", ["ERR syntax "]), ("\t\n", ["ERR syntax "]), (" ping\n", ["OK"]),
    ("ping \n", ["OK"]), ("  ping  \r\n", ["OK"]), ("PiNg\n", ["OK"]), ("\"\"\n", ["ERR unknown-verb "]),
    ("\"ping\"\n", ["OK"]), ("=\n", ["ERR "]), ("a=\n", ["ERR syntax "]), ("a=\"\"\n", ["ERR "]),
    ("check \"\"\n", ["OK invalid"]), ("check\n", ["ERR bad-argument "]), ("get\n", ["ERR bad-argument "]),
    ("get key \"\"\n", ["ERR bad-argument "]), ("item find service=\"\"\n", ["ERR "]),
    ("item put service=\"\" account=\"\" data=\"\"\n", ["ERR bad-argument "]),
    ("version report \"\"\n", ["ERR bad-argument "]),
    ("token put \"\" t\n", ["ERR bad-argument "]), ("token put p \"\"\n", ["ERR bad-argument "]),
    ("subscribe \"\"\n", ["ERR bad-argument "]), ("help \"\"\n", ["ERR unknown-verb "]),
    ("ping\nping\r\nping", ["OK", "OK"]),
  ]

  @Test(arguments: shapes)
  func `row 23: empty and nearly empty lines have defined answers`(
    shape: (bytes: String, replies: [String])
  )
    throws
  {
    let client = try daemon.client()
    try client.send(shape.bytes)
    try client.endWriting()
    let lines = try client.rest()
    #expect(lines.count == shape.replies.count, "\(lines)")
    for (line, reply) in zip(lines, shape.replies) { #expect(line.hasPrefix(reply), "\(line)") }
    #expect(try daemon.ask("ping") == "OK")
  }

  /// Bytes that are not valid text in the protocol.
  private static let broken: [[UInt8]] = [
    [0x80], [0xbf, 0xbf], [0xc0, 0x80], [0xc0, 0xaf], [0xc1, 0x81], [0xc3], [0xc3, 0x28], [0xe0, 0x80, 0xaf],
    [0xe2, 0x82], [0xed, 0xa0, 0x80], [0xed, 0xbf, 0xbf], [0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80],
    [0xf0, 0x80, 0x80, 0xaf],
    [0xf4, 0x90, 0x80, 0x80], [0xf8, 0x88, 0x80, 0x80, 0x80], [0xfe], [0xff], [0x00], [0x61, 0x00, 0x62], [0x1b, 0x5b],
    [0x7f], [0xc2, 0x85], [0xc2, 0x9b],
  ]

  @Test(arguments: [
    "get key %", "get key \"%\"", "check %", "item add service=% account=a data=eA==", "version report %",
    "token put % t", "% x", "item find attr.%=x", "app list app=%",
  ])
  func `row 24: invalid UTF-8 is refused in every position, and the connection continues`(request: String) throws {
    let client = try daemon.client()
    let parts = request.split(separator: "%", omittingEmptySubsequences: false).map { Array($0.utf8) }
    for bytes in Self.broken {
      try client.send(parts[0] + bytes + parts[1] + [0x0a])
      #expect(try client.answer()[0].hasPrefix("ERR syntax "), "\(bytes)")
    }
    #expect(try client.ask("ping") == ["OK"])
  }

  /// Names that look alike or that a string library may treat as equal. No two have the same bytes.
  private static let twins = [
    "a", "A", "ａ", "а", "K", "\u{212a}", "k", "Å", "\u{212b}", "A\u{30a}", "é", "e\u{301}", "ﬁ", "fi", "ß", "ss", "ẞ",
    "a.",
    ".a", "a ", " a", "a\u{200b}", "a\u{feff}", "\u{feff}a", "a\u{202e}", "a\u{0}b", "ａｂ", "ab", "İ", "i\u{307}", "ı",
    "i",
    "I", "a/../b", "b", "%61", "a\u{ad}", "각", "\u{1100}\u{1161}\u{11a8}", "a\u{e0061}", "_", "__proto__",
  ].filter { !$0.contains("\0") }

  @Test func `rows 24 and 40b: names that look alike are different items and come back byte for byte`() throws {
    let client = try daemon.client()
    let bytes = Self.twins.map { Array($0.utf8) }
    #expect(Set(bytes).count == bytes.count)
    for (index, twin) in Self.twins.enumerated() {
      let secret = Data("secret \(index)".utf8).base64EncodedString()
      #expect(
        try client.ask("item add service=\"\(twin)\" account=\"\(twin)\" data=\(secret)") == ["OK"], "\(bytes[index])")
    }
    for (index, twin) in Self.twins.enumerated() {
      let secret = Data("secret \(index)".utf8).base64EncodedString()
      let answer = try client.ask("item read service=\"\(twin)\" account=\"\(twin)\"")[0]
      #expect(answer.hasPrefix("OK data=\(secret) "), "\(bytes[index])")
      // The name comes back as it was written, bare or as a JSON string.
      #expect(
        Data(answer.utf8).range(of: Data(" account=\(twin)".utf8)) != nil
          || Data(answer.utf8).range(of: Data(" account=\"\(twin)\"".utf8)) != nil, "\(answer)")
      #expect(try client.ask("item find account=\"\(twin)\"").last == "OK 1")
    }
    // The identifiers of keys with these names differ too.
    let keys = try Self.twins.map { try client.ask("get key \"\($0)\"")[0].split(separator: " ")[1] }
    #expect(Set(keys).count == Self.twins.count)
  }

  @Test func `row 40b: only the exact name of an app or group matches`() throws {
    let own = try #require(try daemon.ask("whoami").split(separator: " ").dropFirst().first.map(String.init))
    let client = try daemon.client()
    #expect(try client.ask("item put service=s account=a data=eA==") == ["OK created"])
    for name in [
      own.uppercased(), own + ".", own + " ", " " + own, own + "\u{200b}", own.replacing("user", with: "ｕser"),
      String(own.dropLast()), own + "0", "0" + own, own.replacing(":", with: "："), "user:+0", "user:00", "user:0x0",
      "user:-0",
    ] {
      #expect(try client.ask("item read service=s account=a group=\"\(name)\"")[0].hasPrefix("ERR "), "\(name)")
      #expect(try client.ask("get installation app=\"\(name)\"")[0].hasPrefix("ERR "), "\(name)")
      #expect(try client.ask("app forget \"\(name)\"")[0].hasPrefix("ERR "), "\(name)")
    }
    #expect(try client.ask("item read service=s account=a group=\(own)")[0].hasPrefix("OK "))
  }

  /// Numbers at the limits of their types, and words that resemble numbers.
  private static let numbers = [
    "0", "1", "-1", "+5", "-0", "00", "01", "\" 1\"", "\"1 \"", "\"\"", "1e3", "0x10", "1.5", "1,000", "١", "１", "²",
    "NaN",
    "2147483647", "2147483648", "4294967295", "4294967296", "9223372036854775", "9223372036854776",
    "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616", "99999999999999999999", "340282366920938463463374607431768211456",
    String(repeating: "9", count: 60_000), String(repeating: "0", count: 60_000) + "1",
  ]

  /// Requests with `%` in place of a number, the accepted range, and the beginning of the reply to an accepted number.
  private static let counted: [(request: String, range: ClosedRange<UInt64>, reply: String)] = [
    ("get uuid count=%", 1...10_000, "OK "), ("item find limit=% service=none", 1...UInt64(Int.max), "ERR not-found "),
    ("subscribe item since=%", 0...1, "OK "), ("token list stale=%", 0...3_155_760_000, "OK 0"),
  ]

  @Test(arguments: counted)
  func `row 25: a number must be decimal digits within its range`(
    place: (request: String, range: ClosedRange<UInt64>, reply: String)
  ) throws {
    let client = try daemon.client()
    for number in Self.numbers {
      let isDecimal = number.utf8.allSatisfy { (0x30...0x39).contains($0) }
      let value = isDecimal ? UInt64(number.drop { $0 == "0" }) ?? (number.contains { $0 != "0" } ? nil : 0) : nil
      let wanted = value.map(place.range.contains) == true ? place.reply : "ERR bad-argument "
      let answer = try client.ask(place.request.replacing("%", with: number)).last ?? ""
      #expect(answer.hasPrefix(wanted), "\(number.prefix(40)): \(answer)")
    }
    #expect(try client.ask("ping") == ["OK"])
  }

  @Test(arguments: [
    "version compare % 1", "version compare % %", "version report %", "version report 1 build=%", "version claim %",
    "token put p %", "get key %", "get uuid version=%", "devices put 00000000-0000-4000-8000-000000000001 seen=%",
    "restore add data=%", "item find attr.%=1",
  ])
  func `row 25: a number of any size gets a defined answer where text is expected`(request: String) throws {
    let client = try daemon.client()
    for number in Self.numbers {
      let line = request.replacing("%", with: number)
      guard line.utf8.count < Bound.lineLength else { continue }
      let answer = try client.ask(line).last ?? ""
      let codes = ["OK", "ERR bad-argument ", "ERR syntax ", "ERR not-found ", "ERR conflict ", "ERR limit "]
      #expect(codes.contains { answer.hasPrefix($0) }, "\(number.prefix(40)): \(answer.prefix(200))")
    }
    #expect(try client.ask("ping") == ["OK"])
  }
}
