import Foundation
import TestSupport
import Testing

/// Invalid backups, backups that another key encrypted, and faults while a backup is uploaded.
@Suite(.enabled(if: isRoot, "it takes an admin"), .serialized) struct RestoreRefusalTests {
  private func started(items: Int = 4) throws -> DaemonUnderTest {
    let daemon = try DaemonUnderTest().start()
    let client = try daemon.client()
    for request in ["get device", "get installation", "account set alice"] {
      try #require(try client.ask(request)[0].hasPrefix("OK"))
    }
    for number in 0..<items {
      let said = "data=\(pair(number)) label=\(pair(number))"
      try #require(try client.ask("item put service=s account=a\(number) \(said)") == ["OK created"])
    }
    return daemon
  }

  /// Returns the offset of each record, and the end.
  private func borders(_ backup: Data) -> [Int] {
    var borders = [0]
    while let start = borders.last, start + 4 <= backup.count {
      let length = backup[start..<(start + 4)].reversed().reduce(0) { $0 << 8 | Int($1) }
      borders.append(start + 4 + length)
    }
    return borders
  }

  /// Returns the answers that show whether anything has changed.
  private func state(_ daemon: DaemonUnderTest) throws -> [String] {
    let client = try daemon.client()
    return try ["item find", "history device", "history installation", "app list", "subscribe snapshot=yes"].flatMap {
      try client.ask($0)
    }
  }

  // MARK: Damage

  @Test func `a backup with any damage is refused as a whole`() throws {
    let backup = try started().backup()
    let borders = borders(backup)
    try #require(borders.last == backup.count && borders.count > 9)
    let records = zip(borders, borders.dropFirst()).map { backup[$0..<$1] }
    var damaged: [(String, Data)] = [
      ("empty", Data()), ("appended byte", backup + [0]), ("appended zeros", backup + Data(count: 44)),
      ("appended record", backup + (records.last ?? Data())), ("twice", backup + backup),
      ("without the first", Data(records.dropFirst().joined())), ("the end alone", records.last ?? Data()),
      ("a byte before", [0] + backup),
    ]
    // Every byte of each record's length, and a few of the bytes after it.
    for start in borders.dropLast() {
      for place in [0, 1, 2, 3, 4, 20, 28, 44].map({ start + $0 }) where place < backup.count {
        for bit in [0, 7] {
          var bytes = backup
          bytes[place] ^= 1 << bit
          damaged.append(("bit \(bit) of byte \(place)", bytes))
        }
      }
    }
    for place in stride(from: 11, to: backup.count, by: 37) {
      var bytes = backup
      bytes[place] ^= 1 << UInt8(place % 8)
      damaged.append(("byte \(place)", bytes))
    }
    for border in borders.dropLast() {
      for end in [border - 1, border, border + 1, border + 3, border + 4, border + 40] where (0..<backup.count) ~= end {
        damaged.append(("cut at \(end)", backup.prefix(end)))
      }
    }
    for place in records.indices.dropLast() {
      var swapped = records
      swapped.swapAt(place, place + 1)
      damaged.append(("records \(place) and the next swapped", Data(swapped.joined())))
      var left = records
      left.remove(at: place)
      damaged.append(("without record \(place)", Data(left.joined())))
      var twice = records
      twice.insert(records[place], at: place)
      damaged.append(("record \(place) twice", Data(twice.joined())))
    }
    for length in [1, 3, 4, 5, 44, 1_000, 50_000] {
      damaged.append(("random", Data((0..<length).map { _ in UInt8.random(in: 0...255) })))
      damaged.append(("zeros", Data(count: length)))
      damaged.append(("ones", Data(repeating: 0xff, count: length)))
    }
    let daemon = try DaemonUnderTest().start()
    let before = try state(daemon)
    let client = try daemon.client()
    for (how, bytes) in damaged {
      for options in ["", "dry-run=yes adopt-device=yes"] {
        let answer = try client.restore(bytes, options)
        #expect(answer.count == 1 && answer[0].hasPrefix("ERR conflict "), "\(how): \(answer)")
      }
    }
    #expect(try state(daemon) == before)
    #expect(try client.restore(backup).last == "OK 9")
  }

  @Test func `a backup that another key encrypted is refused`() throws {
    let backup = try started().backup()
    let daemon = try DaemonUnderTest().start()
    let before = try state(daemon)
    for place in [0, 15, 31] {
      var key = try #require(Data(base64Encoded: backupKey))
      key[place] ^= 1
      let answer = try daemon.restore(backup, key: key.base64EncodedString())
      #expect(answer.count == 1 && answer[0].hasPrefix("ERR conflict "))
    }
    #expect(try state(daemon) == before)
  }

  @Test func `a record of another backup is refused, even if both have the same key`() throws {
    let daemon = try started()
    let old = try daemon.backup()
    #expect(try daemon.ask("item put service=s account=a1 data=\(pair(77)) label=\(pair(77))") == "OK replaced")
    let new = try daemon.backup()
    let (oldBorders, newBorders) = (borders(old), borders(new))
    try #require(oldBorders == newBorders)
    var taken: [String] = []
    for (start, end) in zip(newBorders, newBorders.dropFirst()) {
      let answer = try daemon.restore(Data(new[..<start] + old[start..<end] + new[end...]), "dry-run=yes")
      if !answer[0].hasPrefix("ERR conflict ") { taken.append("bytes \(start) to \(end): \(answer)") }
    }
    #expect(taken == [])
  }

  // MARK: Upload

  @Test func `restore add and restore end need a begin, and a new begin starts afresh`() throws {
    let daemon = try started()
    let backup = try daemon.backup()
    let client = try daemon.client()
    let first = backup.prefix(30).base64EncodedString()
    for request in ["restore add data=\(first)", "restore end", "restore end dry-run=yes"] {
      #expect(try client.ask(request)[0].hasPrefix("ERR conflict "))
    }
    #expect(try client.ask("restore begin key=\(backupKey)") == ["OK"])
    #expect(try client.ask("restore add data=\(first)") == ["OK 30"])
    #expect(try client.ask("restore add data=\"\"") == ["OK 30"])
    // Refused data is not added, and the data before it stays.
    for data in ["!", "AAAAA", "QQ=", "QUI\\n"] {
      #expect(try client.ask("restore add data=\"\(data)\"")[0].hasPrefix("ERR bad-argument "))
    }
    #expect(try client.ask("restore add data=\(backup.dropFirst(30).prefix(3).base64EncodedString())") == ["OK 33"])
    #expect(try client.ask("restore begin key=\(backupKey)") == ["OK"])
    #expect(try client.ask("restore add data=\(first)") == ["OK 30"])
    // One byte at a time, without the padding of Base64.
    for start in stride(from: 30, to: 60, by: 1) {
      let piece = backup[start..<(start + 1)].base64EncodedString().replacing("=", with: "")
      #expect(try client.ask("restore add data=\(piece)") == ["OK \(start + 1)"])
    }
    #expect(try client.ask("restore add data=\(backup.dropFirst(60).base64EncodedString())") == ["OK \(backup.count)"])
    #expect(try client.ask("restore end dry-run=yes").last == "OK 1")
    // The end discards the uploaded data, also after a dry run.
    #expect(try client.ask("restore end")[0].hasPrefix("ERR conflict "))
    #expect(try client.ask("restore begin key=\(backupKey)") == ["OK"])
    #expect(try client.ask("restore end")[0].hasPrefix("ERR conflict "))
    #expect(try client.ask("restore add data=AAAA")[0].hasPrefix("ERR conflict "))
  }

  @Test func `a restore can be pipelined, and the requests behind it see its result`() throws {
    let backup = try started().backup()
    let daemon = try DaemonUnderTest().start()
    let client = try daemon.client()
    let requests = Client.upload(backup)
    let behind = ["restore end dry-run=yes", "item find"] + requests + ["restore end", "item find", "ping"]
    try client.send((["item put service=s account=z data=eA=="] + requests + behind).map { $0 + "\n" }.joined())
    try client.endWriting()
    #expect(try client.answer() == ["OK created"])
    for _ in requests { #expect(try client.answer()[0].hasPrefix("OK")) }
    #expect(try client.answer().count == 9)
    #expect(try client.answer().last == "OK 1")
    for _ in requests { #expect(try client.answer()[0].hasPrefix("OK")) }
    #expect(try client.answer().count == 9)
    #expect(try client.answer().last == "OK 5")
    #expect(try client.answer() == ["OK"])
    #expect(try client.rest() == [])
  }

  @Test func `only one restore runs at a time, and the end of its connection makes room`() throws {
    let daemon = try started()
    let backup = try daemon.backup()
    let second = try daemon.client()
    do {
      let first = try daemon.client()
      #expect(try first.ask("restore begin key=\(backupKey)") == ["OK"])
      #expect(try second.ask("restore begin key=\(backupKey)")[0].hasPrefix("ERR conflict "))
      for request in ["restore add data=AAAA", "restore end"] {
        #expect(try second.ask(request)[0].hasPrefix("ERR conflict "))
      }
      #expect(try first.restore(backup, "dry-run=yes").last == "OK 1")
      #expect(try second.restore(backup, "dry-run=yes").last == "OK 1")
      #expect(try first.ask("restore begin key=\(backupKey)") == ["OK"])
      #expect(try first.ask("restore add data=AAAA") == ["OK 3"])
      #expect(try first.ask("quit") == ["OK"])
    }
    for _ in 0..<10_000 where try second.ask("restore begin key=\(backupKey)") != ["OK"] { usleep(1_000) }
    #expect(try second.restore(backup).last == "OK 1")
    // An incomplete request is not carried out, and its connection makes room when it ends.
    try daemon.client().send("restore begin key=\(backupKey)\nrestore add data=AAAA")
    try daemon.waitForStatus("connections", "2")
    #expect(try second.restore(backup).last == "OK 1")
  }

  @Test func `without the master key of the items nothing is restored`() throws {
    let backup = try started().backup()
    let daemon = try started(items: 1)
    daemon.end()
    let key = try Data(contentsOf: daemon.masterKey)
    try FileManager.default.removeItem(at: daemon.masterKey)
    try daemon.start()
    let last = try daemon.client().statusValue("last-event")
    for options in ["", "dry-run=yes"] { #expect(try daemon.restore(backup, options)[0].hasPrefix("ERR unavailable ")) }
    #expect(try daemon.client().statusValue("last-event") == last)
    daemon.end()
    try key.write(to: daemon.masterKey)
    try daemon.start()
    #expect(try daemon.restore(backup).last?.hasPrefix("OK ") == true)
    #expect(try daemon.ask("item find") == "OK 4")
  }

  // MARK: Faults

  @Test(arguments: [("pwrite64:error=ENOSPC:when=3+", "no-space"), ("fdatasync:error=EIO", "unknown")])
  func `a restore that the disk refuses changes nothing and can be repeated`(fault: String, code: String) throws {
    let backup = try started(items: 30).backup()
    let daemon = try DaemonUnderTest().start()
    let before = try state(daemon)
    try Fault.inject(fault, into: daemon) { () throws in
      for _ in 0..<2 {
        let answer = try daemon.restore(backup)[0]
        // After the commit whose sync failed, the daemon refuses further changes without an attempt.
        #expect(
          answer.hasPrefix("ERR \(code) ") || code == "unknown" && answer.hasPrefix("ERR read-only "), "\(answer)")
        #expect(try state(daemon) == before)
        #expect(try daemon.restore(backup, "dry-run=yes").last == "OK 35")
      }
    }
    #expect(try state(daemon) == before)
    let deadline = Date(timeIntervalSinceNow: patience)
    while Date() < deadline, try daemon.restore(backup).last != "OK 35" { usleep(50_000) }
    for place in 0..<30 {
      #expect(try readPair(try daemon.ask("item read service=s account=a\(place)")) == pair(place))
    }
  }

  @Test func `a kill during a restore leaves all of it or nothing`() throws {
    let backup = try started(items: 30).backup()
    for (call, numbers) in [("pwrite64", [1, 2, 5, 9, 12, 20]), ("fdatasync", [1, 2])] {
      for number in numbers {
        let daemon = try DaemonUnderTest().start()
        let before = try state(daemon)
        var isDone = false
        try Fault.inject("\(call):signal=SIGKILL:when=\(number)", into: daemon) { () throws in
          isDone = (try? daemon.restore(backup))?.last == "OK 35"
        }
        daemon.end(with: SIGKILL)
        try daemon.start()
        #expect(try daemon.client().statusValue("store") == "ok")
        if try state(daemon) == before {
          #expect(!isDone)
          #expect(try daemon.restore(backup).last == "OK 35")
        }
        for place in 0..<30 {
          #expect(try readPair(try daemon.ask("item read service=s account=a\(place)")) == pair(place))
        }
        #expect(try daemon.restore(backup).last == "OK 1")
      }
    }
  }
}
