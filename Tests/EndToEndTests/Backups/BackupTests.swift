import Foundation
import TestSupport
import Testing

/// A backup key: the bytes 1 to 32 in Base64.
let backupKey = Data((1...32).map { UInt8($0) }).base64EncodedString()

extension Client {
  /// Returns the backup in an answer to `backup`.
  static func backup(in answer: [String]) throws -> Data {
    var bytes = Data()
    for row in answer.dropLast() {
      try #require(row.hasPrefix("* data="), "\(row)")
      bytes += try #require(Data(base64Encoded: String(row.dropFirst("* data=".count))))
    }
    try #require(answer.last == "OK \(bytes.count)", "\(answer.last ?? "")")
    return bytes
  }

  /// Returns the requests that upload a backup, up to but not including `restore end`.
  static func upload(_ bytes: Data, key: String = backupKey) -> [String] {
    let pieces = stride(from: bytes.startIndex, to: bytes.endIndex, by: 24_000).map { start in
      "restore add data=\(bytes[start..<min(start + 24_000, bytes.endIndex)].base64EncodedString())"
    }
    return ["restore begin key=\(key)"] + pieces
  }

  /// Uploads a backup and ends the restore with the options.
  ///
  /// - Returns: the answer to `restore end`, or the first refusal.
  func restore(_ bytes: Data, _ options: String = "", key: String = backupKey) throws -> [String] {
    for request in Self.upload(bytes, key: key) {
      let answer = try ask(request)
      guard answer.last?.hasPrefix("OK") == true else { return answer }
    }
    return try ask("restore end \(options)")
  }
}

extension DaemonUnderTest {
  /// Makes a backup.
  func backup(key: String = backupKey) throws -> Data { try Client.backup(in: try client().ask("backup key=\(key)")) }

  /// Restores a backup.
  func restore(_ bytes: Data, _ options: String = "", key: String = backupKey) throws -> [String] {
    try client().restore(bytes, options, key: key)
  }
}

/// The verbs `backup` and `restore`. A backup holds the whole state in encrypted form.
@Suite(.enabled(if: isRoot, "it takes an admin"), .serialized, .tags(.threads)) struct BackupTests {
  /// Starts a daemon with a number of items whose secrets have a given length.
  private func started(items: Int, of length: Int, configuration: String? = nil) throws -> DaemonUnderTest {
    let daemon = try DaemonUnderTest().start(configuration: configuration)
    let client = try daemon.client()
    for number in 0..<items {
      let secret = Data((0..<length).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ number) })
      try #require(
        try client.ask("item put service=s account=a\(number) data=\(secret.base64EncodedString())") == ["OK created"])
    }
    return daemon
  }

  private func expectItems(_ count: Int, of length: Int, _ daemon: DaemonUnderTest) throws {
    let client = try daemon.client()
    for number in 0..<count {
      let secret = Data((0..<length).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ number) })
      let read = try client.ask("item read service=s account=a\(number)")[0]
      #expect(read.hasPrefix("OK data=\(secret.base64EncodedString()) service=s account=a\(number) "))
    }
  }

  // MARK: Permission

  @Test func `backup and restore require an admin`() throws {
    let requests = [
      "backup key=\(backupKey)", "restore begin key=\(backupKey)", "restore add data=AAAA", "restore end",
      "restore end dry-run=yes",
    ]
    let daemon = try DaemonUnderTest().start()
    let other = try OtherUser(65_534, of: daemon)
    for request in requests { #expect(try other.ask(request).hasPrefix("ERR denied "), "\(request)") }
    try other.end()
    daemon.end()
    // Members of the group in `AdminGroup=` are admins. Group 5 is tty.
    try daemon.start(configuration: "[Access]\nAdminGroup=tty\n")
    let admin = try OtherUser(5, of: daemon)
    #expect(try admin.ask("restore begin key=\(backupKey)") == "OK\n")
    #expect(try admin.ask("backup key=\(backupKey)").hasPrefix("* data="))
    try admin.end()
  }

  @Test(arguments: [0, 1, 16, 31, 33, 64]) func `a backup key must have 32 bytes`(length: Int) throws {
    let daemon = try DaemonUnderTest().start()
    let key = length == 0 ? "\"\"" : Data(repeating: 7, count: length).base64EncodedString()
    #expect(try daemon.ask("backup key=\(key)").hasPrefix("ERR bad-argument "))
    // Both `restore begin` and `restore end` may refuse the key.
    let client = try daemon.client()
    let begun = try client.ask("restore begin key=\(key)")[0]
    if begun == "OK" {
      #expect(try client.ask("restore add data=AAAA") == ["OK 3"])
      #expect(try client.ask("restore end")[0].hasPrefix("ERR bad-argument "))
    } else {
      #expect(begun.hasPrefix("ERR bad-argument "))
    }
    for request in ["backup", "restore begin", "backup key=!", "restore begin key=!"] {
      #expect(try daemon.ask(request).hasPrefix("ERR bad-argument "))
    }
  }

  // MARK: Content

  @Test func `a backup reveals no stored text, and two backups have no 8 bytes in common`() throws {
    let daemon = try DaemonUnderTest().start(["--log-level=debug"])
    func word() -> String { String((0..<48).map { _ in "abcdefghijklmnopqrstuvwxyz".randomElement() ?? "a" }) }
    let (secret, label, value, service, account, name) = (word(), word(), word(), word(), word(), word())
    let data = Data(secret.utf8).base64EncodedString()
    let client = try daemon.client()
    #expect(
      try client.ask("item put service=\(service) account=\(account) data=\(data) label=\(label) attr.x=\(value)")
        == ["OK created"])
    #expect(try client.ask("account set \(name)") == ["OK"])
    let device = try daemon.uuid("get device")
    let installation = try daemon.uuid("get installation")
    let (first, second) = (try daemon.backup(), try daemon.backup())
    for text in [secret, data, label, value, service, account, name, device, installation, "user:", "identityd"] {
      for backup in [first, second] { #expect(backup.range(of: Data(text.utf8)) == nil, "\(text)") }
      if text == secret || text == data { #expect(!daemon.log.contains(text)) }
    }
    #expect(!daemon.log.contains(backupKey))
    #expect(first.count == second.count)
    let pieces = Set(stride(from: 4, to: first.count - 8, by: 8).map { first[$0..<($0 + 8)] })
    for start in stride(from: 4, to: second.count - 8, by: 1) { #expect(!pieces.contains(second[start..<(start + 8)])) }
  }

  @Test func `neither a backup nor a restore leaves a secret or a key in the daemon's memory`() throws {
    let daemon = try started(items: 3, of: 10)
    let client = try daemon.client()
    let secret = Data((0..<20_000).map { _ in UInt8.random(in: 0...255) })
    let key = Data((0..<32).map { _ in UInt8.random(in: 0...255) })
    #expect(try client.ask("item put service=s account=x data=\(secret.base64EncodedString())") == ["OK created"])
    let backup = try daemon.backup(key: key.base64EncodedString())
    #expect(try client.ask("item delete account=x") == ["OK 1"])
    for options in ["dry-run=yes", "", ""] {
      #expect(try client.restore(backup, options, key: key.base64EncodedString()).last?.hasPrefix("OK ") == true)
    }
    #expect(try client.ask("restore begin key=\(key.base64EncodedString())") == ["OK"])
    #expect(try client.restore(backup.dropLast(), key: key.base64EncodedString())[0].hasPrefix("ERR conflict "))
    #expect(try client.ask("item read service=s account=x")[0].contains(secret.base64EncodedString()))
    #expect(try client.ask("ping") == ["OK"])
    let memory = try daemon.memory()
    #expect(memory.count > 1_000_000)
    for (name, bytes) in [("secret", secret), ("key", key)] {
      let text = Data(bytes.base64EncodedString().utf8)
      for start in [bytes.count / 4, bytes.count / 2] {
        #expect(memory.range(of: bytes[start..<(start + 16)]) == nil, "\(name)")
        #expect(memory.range(of: text[start..<(start + 16)]) == nil, "\(name) in Base64")
      }
    }
  }

  @Test func `a backup names a damaged item, and succeeds once that item is replaced`() throws {
    let daemon = try started(items: 3, of: 10)
    daemon.end()
    try daemon.edit("DELETE FROM secret WHERE n = 2")
    try daemon.start()
    let refusal = try daemon.ask("backup key=\(backupKey)")
    #expect(refusal.hasPrefix("ERR internal ") && refusal.hasSuffix(" service=s account=a1"), "\(refusal)")
    #expect(try daemon.ask("item put service=s account=a1 data=eA==") == "OK replaced")
    #expect(try daemon.backup().count > 100)
  }

  // MARK: Concurrent requests

  @Test func `a backup contains the changes pipelined before it, and later replies follow it`() throws {
    let daemon = try DaemonUnderTest().start()
    let client = try daemon.client()
    func put(_ number: Int) -> String { "item put service=s account=a data=\(pair(number)) label=\(pair(number))\n" }
    let read = "item read service=s account=a\n"
    let backup = "backup key=\(backupKey)\n"
    try client.send("\(put(1))\(backup)\(put(2))\(read)ping\n\(backup)\(backup)\(put(3))get device\n\(read)ping\n")
    try client.endWriting()
    #expect(try client.answer() == ["OK created"])
    var backups = [try Client.backup(in: try client.answer())]
    #expect(try client.answer() == ["OK replaced"])
    #expect(try readPair(try client.answer()[0]) == pair(2))
    #expect(try client.answer() == ["OK"])
    for _ in 0..<2 { backups.append(try Client.backup(in: try client.answer())) }
    #expect(try client.answer() == ["OK replaced"])
    #expect(try client.answer()[0].contains("level=device"))
    #expect(try readPair(try client.answer()[0]) == pair(3))
    #expect(try client.answer() == ["OK"])
    #expect(try client.rest() == [])
    for (backup, number) in zip(backups, [1, 2, 2]) {
      #expect(try daemon.restore(backup).last?.hasPrefix("OK ") == true)
      #expect(try readPair(try daemon.ask("item read service=s account=a")) == pair(number))
    }
  }

  @Test func `events are sent before or after a backup, never within it`() throws {
    let daemon = try started(items: 30, of: 30_000)
    let client = try daemon.client()
    #expect(try client.subscribe()[0].hasPrefix("OK "))
    try client.send("backup key=\(backupKey)\nping\n")
    for number in 0..<20 { #expect(try daemon.ask("account set a\(number)") == "OK") }
    var rows: [String] = []
    var events = 0
    while rows.last?.hasPrefix("OK ") != true || events < 20, let line = try client.line() {
      if line.hasPrefix("EVENT ") {
        #expect(rows.isEmpty || rows.last?.hasPrefix("OK ") == true, "an event within the backup")
        events += 1
      } else if line != "OK" {
        rows.append(line)
      }
    }
    #expect(try Client.backup(in: rows).count > 900_000)
  }

  @Test func `each backup is a consistent snapshot, even under concurrent changes`() throws {
    let daemon = try DaemonUnderTest().start()
    let load = Load(
      try daemon.client(), { "item put service=s account=a\($0 % 5) data=\(pair($0)) label=\(pair($0))" }
    ) { $1 == [$0 < 5 ? "OK created" : "OK replaced"] }
    while load.answers < 20 { usleep(1_000) }
    var backups: [Data] = []
    for _ in 0..<8 { backups.append(try daemon.backup()) }
    #expect(load.stop() == [])
    let other = try DaemonUnderTest().start()
    for backup in backups {
      #expect(try other.restore(backup).last?.hasPrefix("OK ") == true)
      let numbers = try (0..<5).map { account in
        let said = try readPair(try other.ask("item read service=s account=a\(account)"))
        let text = String(decoding: try #require(Data(base64Encoded: said)), as: UTF8.self)
        return try #require(Int(text.dropFirst("number ".count)))
      }.sorted()
      #expect(numbers == Array(numbers[0]..<(numbers[0] + 5)))
    }
  }

  @Test func `row 32b: a client that reads its backup slowly or not at all does not hold up others`() throws {
    let daemon = try started(items: 25, of: 32_000)
    let slow = try daemon.client()
    try slow.send("backup key=\(backupKey)\nping\n")
    for _ in 0..<4 {
      let leaving = try daemon.client()
      try leaving.send("backup key=\(backupKey)\nbackup key=\(backupKey)\n")
      #expect(try leaving.line()?.hasPrefix("* data=") == true)
    }
    for _ in 0..<4 { try daemon.client().send("backup key=\(backupKey)\n") }
    try daemon.waitForStatus("connections", "2")
    #expect(try daemon.ask("item put service=s account=a0 data=eA==") == "OK replaced")
    #expect(try daemon.ask("item read service=s account=a0").hasPrefix("OK data=eA== "))
    #expect(try daemon.ask("get device").hasPrefix("OK "))
    let whole = try Client.backup(in: try slow.answer())
    #expect(try slow.answer() == ["OK"])
    #expect(try daemon.restore(whole).last == "OK 2")
    try expectItems(25, of: 32_000, daemon)
    // A client that does not read its backup does not block a stop of the daemon.
    let deaf = try daemon.client()
    try deaf.send("backup key=\(backupKey)\n")
    #expect(try deaf.line()?.hasPrefix("* data=") == true)
    #expect(daemon.end() == 0)
  }

  @Test func `a backup of several megabytes is complete and restores completely`() throws {
    let daemon = try started(items: 100, of: 32_768, configuration: "[Limits]\nItemBytesPerApp=16M\n")
    let backup = try daemon.backup()
    #expect(backup.count > 100 * 32_768)
    let other = try DaemonUnderTest().start()
    #expect(try other.restore(backup, "dry-run=yes").count == 104)
    // Quotas do not limit a restore.
    #expect(try other.restore(backup).count == 104)
    other.end(with: SIGKILL)
    try other.start()
    try expectItems(100, of: 32_768, other)
  }

  // MARK: Faulty store

  @Test func `backups work while the store cannot be written`() throws {
    let daemon = try started(items: 3, of: 10)
    for fault in ["pwrite64:error=ENOSPC", "fdatasync:error=EIO"] {
      try Fault.inject(fault, into: daemon) { () throws in
        #expect(try daemon.ask("item put service=s account=n data=eA==").hasPrefix("ERR "))
        #expect(try daemon.restore(try daemon.backup(), "dry-run=yes") == ["* device unknown", "OK 1"])
      }
      try daemon.eventually("item put service=s account=a2 data=eA==")
    }
  }

  @Test func `a backup reports no damaged item while the store cannot be reopened`() throws {
    let daemon = try started(items: 3, of: 10)
    try Fault.inject("fdatasync:error=EIO", into: daemon) { () throws in
      #expect(try daemon.ask("item put service=s account=n data=eA==").hasPrefix("ERR unknown "))
    }
    // Fails the second rename, which gives the rewritten file its final name. The daemon has no connection to that
    // file yet.
    try Fault.inject("rename,renameat,renameat2:error=EIO:when=2+", into: daemon) { () throws in
      #expect(try daemon.ask("item put service=s account=n data=eA==").contains("identityd.db.rewritten"))
      #expect(try daemon.ask("item read service=s account=a1").hasPrefix("OK "))
      let answer = try daemon.ask("backup key=\(backupKey)")
      #expect(!answer.contains("damaged"), "\(answer)")
    }
    try daemon.eventually("item put service=s account=n data=eA==")
    #expect(try daemon.backup().count > 100)
  }

  @Test func `on another machine a backup is refused until the identifiers are renewed`() throws {
    let daemon = try DaemonUnderTest()
    func start(_ number: Int, through wrapper: [String] = []) throws {
      let machine = try daemon.onMachine(withID: "\(number)\(String(repeating: "0", count: 31))\n")
      try daemon.start(through: machine + wrapper)
    }
    try start(1)
    #expect(try daemon.ask("get device").hasPrefix("OK "))
    daemon.end()
    try start(2, through: StoreFaultTests.fullDisk)
    #expect(try daemon.ask("history device").hasPrefix("ERR no-space "))
    #expect(try daemon.ask("backup key=\(backupKey)").hasPrefix("ERR "))
    try daemon.killTraced()
  }
}
