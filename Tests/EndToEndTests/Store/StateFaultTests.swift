import Foundation
import TestSupport
import Testing

/// Foreign files in the places of the daemon's files, and other programs that use its files at the same time.
@Suite(.enabled(if: isRoot, "making files of other users needs root"), .tags(.seldomThreads)) struct StateFaultTests {
  /// The users that run the daemon.
  private static let users = [0, 65_534]

  private func asUser(_ user: Int) -> [String] {
    user == 0 ? [] : ["setpriv", "--reuid=\(user)", "--regid=\(user)", "--clear-groups"]
  }

  /// Creates a daemon whose folder belongs to a user.
  private func daemon(of user: Int) throws -> DaemonUnderTest {
    let daemon = try DaemonUnderTest()
    try FileManager.default.setAttributes(
      [.ownerAccountID: user, .groupOwnerAccountID: user], ofItemAtPath: daemon.folder.path)
    try daemon.configure("")
    return daemon
  }

  /// Commands that create something in the place of the state directory, each with the expected part of the error.
  private static let folders = [
    ("ln -s $ELSEWHERE $STATE", "Not a directory"), ("mkfifo $STATE", "Not a directory"),
    ("echo precious > $STATE", "Not a directory"), ("mkdir -m 0777 $STATE", "chmod 0700"),
    ("mkdir -m 0750 $STATE", "chmod 0700"), ("mkdir -m 0700 $STATE; chown 12345:12345 $STATE", "uid 12345"),
  ]

  @Test(arguments: users, folders)
  func `row 19: a state directory that is not private to the daemon's user is refused by name`(
    user: Int, fault: (making: String, said: String)
  ) throws {
    let daemon = try daemon(of: user)
    let elsewhere = daemon.folder.appending(path: "elsewhere").path
    let script =
      "mkdir \(elsewhere); " + (user == 0 ? "" : "chown \(user) \(elsewhere); ") + fault.making
      + (fault.making.contains("chown") ? "" : "; chown -h \(user) $STATE")
    #expect(
      try run(["sh", "-c", script], environment: ["STATE": daemon.state.path, "ELSEWHERE": elsewhere]).status == 0)
    let before = try run(["ls", "-ldn", daemon.state.path]).output
    try daemon.launch(through: asUser(user))
    #expect(daemon.exitStatus() == 73)
    #expect(daemon.log.contains(daemon.state.path), "\(daemon.log)")
    // A daemon that may not enter the directory reports that instead.
    #expect(daemon.log.contains(fault.said) || daemon.log.contains("Permission denied"), "\(daemon.log)")
    #expect(try run(["ls", "-ldn", daemon.state.path]).output == before)
    #expect(try FileManager.default.contentsOfDirectory(atPath: elsewhere) == [])
  }

  @Test(arguments: users, ["ln -s $ELSEWHERE $FILE", "mkfifo $FILE", "mkdir $FILE", "ln -s nowhere $FILE"])
  func `row 19: a database file that is no regular file is not followed, read or removed`(
    user: Int, making: String
  ) throws {
    let daemon = try daemon(of: user)
    try daemon.start(through: asUser(user))
    daemon.end()
    let file = daemon.state.appending(path: "identityd.db").path
    let elsewhere = daemon.folder.appending(path: "elsewhere").path
    let script = "mv $FILE $ELSEWHERE; \(making); chown -h \(user) $FILE"
    #expect(try run(["sh", "-c", script], environment: ["FILE": file, "ELSEWHERE": elsewhere]).status == 0)
    let before = try Data(contentsOf: URL(filePath: elsewhere))
    try daemon.launch(through: asUser(user))
    #expect(daemon.exitStatus() == 73)
    #expect(daemon.log.contains("\(file): it is not a regular file"), "\(daemon.log)")
    #expect(try Data(contentsOf: URL(filePath: elsewhere)) == before)
    #expect(FileManager.default.fileExists(atPath: file) || making.contains("nowhere"))
  }

  @Test(arguments: ["identityd.db", "identityd.db-wal"], ["rm $FILE", "cp $FILE $FILE.copy; mv $FILE.copy $FILE"])
  func `row 14: removing or replacing a file of a running daemon loses nothing acknowledged`(
    name: String, doing: String
  ) throws {
    let daemon = try DaemonUnderTest().start()
    let client = try daemon.client()
    var acknowledged: [Int] = []
    let file = daemon.state.appending(path: name).path
    for number in 0..<40 {
      if number == 20 { #expect(try run(["sh", "-c", doing], environment: ["FILE": file]).status == 0) }
      let answer = try client.ask("item put service=s account=a\(number) data=eA==").last ?? ""
      if answer == "OK created" {
        acknowledged.append(number)
      } else {
        #expect(["ERR read-only ", "ERR unknown "].contains { answer.hasPrefix($0) }, "\(answer)")
      }
    }
    // The daemon noticed the fault at the next change, or before it.
    #expect(daemon.log.contains("was replaced or deleted while the daemon ran"), "\(daemon.log)")
    try daemon.eventually("item put service=s account=last data=eA==")
    daemon.end(with: SIGKILL)
    try daemon.start()
    let found = Set(try daemon.client().ask("item find service=s").dropLast())
    for number in acknowledged { #expect(found.contains { $0.contains(" account=a\(number) ") }, "\(number)") }
  }

  @Test(arguments: [
    ("store.key", "rm $FILE"), ("master.key", "rm $FILE"), ("store.key", "echo other > $FILE"),
    ("master.key", "cp $FILE $FILE.copy; mv $FILE.copy $FILE"), ("identityd.db", "rm $FILE"),
    ("identityd.db-wal", "rm $FILE"), ("identityd.db", "rm $(dirname $FILE)/*"),
  ])
  func `row 14: files that are removed or replaced are restored at once, without a request`(
    name: String, doing: String
  ) throws {
    let daemon = try DaemonUnderTest().start()
    let device = try daemon.uuid("get device")
    #expect(try daemon.ask("item put service=s account=a data=eA==") == "OK created")
    let file = daemon.state.appending(path: name)
    #expect(try run(["sh", "-c", doing], environment: ["FILE": file.path]).status == 0)
    try daemon.waitForLog("was replaced or deleted while the daemon ran")
    try daemon.waitForLog("changes are possible again")
    try daemon.waitForStatus("store", "ok")
    daemon.end(with: SIGKILL)
    try daemon.start()
    #expect(try daemon.client().statusValue("store") == "ok")
    #expect(try daemon.uuid("get device") == device)
    #expect(try daemon.client().ask("item read service=s account=a")[0].hasPrefix("OK data=eA== "))
  }

  @Test func `row 15: no file that another program could truncate is mapped into the daemon`() throws {
    let daemon = try DaemonUnderTest().start()
    let client = try daemon.client()
    #expect(try client.ask("item put service=s account=a data=eA==") == ["OK created"])
    #expect(try client.ask("item read service=s account=a")[0].hasPrefix("OK data=eA== "))
    let names = try FileManager.default.contentsOfDirectory(atPath: daemon.state.path)
    #expect(names.contains("identityd.db-wal") && !names.contains { $0.hasSuffix("-shm") }, "\(names)")
    let maps = try daemon.kernelFile("maps")
    #expect(maps.contains("identityd") && !maps.contains(daemon.state.path))
  }

  @Test(arguments: 0..<8)
  func `row 20b: of two daemons started at once, one serves and the other names it`(round: Int) throws {
    let first = try DaemonUnderTest()
    let second = try DaemonUnderTest()
    try first.launch()
    try second.launch(["--state-directory", first.state.path, "--socket", first.socket])
    let deadline = Date(timeIntervalSinceNow: patience)
    while first.process.isRunning, second.process.isRunning, Date() < deadline { usleep(2_000) }
    #expect(first.process.isRunning != second.process.isRunning)
    let (winner, loser) = first.process.isRunning ? (first, second) : (second, first)
    #expect([69, 75].contains(loser.process.terminationStatus), "\(loser.log)")
    try winner.waitForLog("Serving on")
    #expect(try first.client().statusValue("pid") == "\(winner.process.processIdentifier)")
    #expect(try first.ask("get device").hasPrefix("OK "))
    winner.end()
    #expect(!FileManager.default.fileExists(atPath: first.socket))
  }

  @Test func `row 20c: a database locked by another program ends the start in bounded time`() throws {
    let daemon = try DaemonUnderTest().start()
    let device = try daemon.uuid("get device")
    daemon.end()
    let shell = Process()
    shell.executableURL = URL(filePath: "/usr/bin/sqlite3")
    shell.arguments = [daemon.state.appending(path: "identityd.db").path]
    let input = Pipe()
    let output = Pipe()
    shell.standardInput = input
    shell.standardOutput = output
    try shell.runUnmasked()
    try input.fileHandleForWriting.write(contentsOf: Data("BEGIN EXCLUSIVE; SELECT 1;\n".utf8))
    _ = output.fileHandleForReading.availableData
    try daemon.launch()
    #expect(daemon.exitStatus() == 73)
    #expect(daemon.log.contains("database is locked"), "\(daemon.log)")
    try input.fileHandleForWriting.close()
    shell.waitUntilExit()
    try daemon.start()
    #expect(try daemon.uuid("get device") == device)
  }

  @Test func `rows 20c and 20d: at no moment can another program write to the daemon's database`() throws {
    let daemon = try DaemonUnderTest().start()
    let client = try daemon.client()
    let file = daemon.state.appending(path: "identityd.db").path
    let key = Data(repeating: 7, count: 32).base64EncodedString()
    for request in [
      "get device", "get installation", "item put service=s account=a data=eA==", "item read service=s account=a",
      "key rotate", "backup key=\(key)", "item delete account=a", "app list", "status",
    ] {
      #expect(try client.ask(request).last?.hasPrefix("OK") == true, "\(request)")
      let other = try run(["sqlite3", file, "DELETE FROM identifier"])
      #expect(other.status != 0 && other.errors.contains("locked"), "\(request): \(other)")
    }
    kill(daemon.process.processIdentifier, SIGHUP)
    try daemon.waitForLog("The configuration was loaded.")
    #expect(try run(["sqlite3", file, "DELETE FROM identifier"]).errors.contains("locked"))
  }
}
