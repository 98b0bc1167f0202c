import Foundation
import IdentityCore
import TestSupport
import Testing

extension DaemonUnderTest {
  /// Waits until a backup is recorded that is later than another one, and returns its time.
  func waitForBackupTime(after earlier: String = "") throws -> String {
    let client = try client()
    let deadline = Date(timeIntervalSinceNow: patience)
    while Date() < deadline {
      if let time = try client.statusValue("last-backup"), time > earlier { return time }
      usleep(2_000)
    }
    throw Failure("no backup was recorded")
  }
}

/// The time of the last backup, in `status` and in the metrics, with a real daemon.
@Suite(.enabled(if: isRoot, "it takes an admin"), .serialized, .tags(.plain)) struct BackupTimeTests {
  private func time(_ daemon: DaemonUnderTest) throws -> String? {
    try daemon.client().statusValue("last-backup")
  }

  /// Expects that no backup is recorded, after the writer has done all that it was told so far.
  private func expectNoTime(_ daemon: DaemonUnderTest, at place: SourceLocation = #_sourceLocation) throws {
    // Only the writer knows the answer.
    let question = "machine compare \(String(repeating: "1", count: 32))"
    #expect(try daemon.ask(question) == "OK unknown", sourceLocation: place)
    #expect(try time(daemon) == nil, sourceLocation: place)
  }

  /// The time in seconds according to the metric.
  private func seconds(_ daemon: DaemonUnderTest) throws -> Double? {
    let name = "identityd_last_backup_time_seconds "
    let lines = try identityctl(daemon, "stats", "--prometheus").output.split(separator: "\n")
    return lines.first { $0.hasPrefix(name) }.flatMap { Double($0.dropFirst(name.count)) }
  }

  /// Starts a daemon whose backup is longer than the socket holds.
  private func started() throws -> DaemonUnderTest {
    let daemon = try DaemonUnderTest().start()
    let client = try daemon.client()
    let secret = Data(repeating: 7, count: 32_768).base64EncodedString()
    for number in 1...40 {
      #expect(try client.ask("item put service=s account=a\(number) data=\(secret)") == ["OK created"])
    }
    return daemon
  }

  @Test func `a backup is recorded once it is read, and a later one replaces its time`() throws {
    let daemon = try DaemonUnderTest().start()
    #expect(try time(daemon) == nil && seconds(daemon) == nil)
    let before = Date().timeIntervalSince1970
    _ = try daemon.backup()
    let first = try daemon.waitForBackupTime()
    let recorded = try #require(Timestamp(parsing: Text(first)))
    #expect(try seconds(daemon) == Double(recorded.milliseconds) / 1_000)
    #expect(Double(recorded.milliseconds) / 1_000 >= before.rounded(.down))
    _ = try daemon.backup()
    let second = try daemon.waitForBackupTime(after: first)
    daemon.end()
    try daemon.start()
    #expect(try time(daemon) == second)
    let other = try OtherUser(65_534, of: daemon)
    #expect(try !other.ask("status").contains("last-backup"))
    try other.end()
  }

  @Test func `a connection that stays open and idle is no obstacle`() throws {
    let daemon = try started()
    let client = try daemon.client()
    _ = try Client.backup(in: client.ask("backup key=\(backupKey)"))
    _ = try daemon.waitForBackupTime()
    #expect(try client.ask("ping") == ["OK"])
  }

  @Test func `the next request waits until the backup is read`() throws {
    let daemon = try started()
    let client = try daemon.client()
    try client.send("backup key=\(backupKey)\nping\n")
    _ = try Client.backup(in: client.answer())
    #expect(try client.answer() == ["OK"])
    _ = try daemon.waitForBackupTime()
  }

  @Test func `a client that sends no more gets the whole backup and then the end`() throws {
    let daemon = try started()
    let backup = try run(
      ["sh", "-c", "printf 'backup key=%s\\n' \(backupKey) | socat -t 60 - UNIX-CONNECT:'\(daemon.socket)'"])
    #expect(backup.output.split(separator: "\n").last?.hasPrefix("OK ") == true)
    _ = try daemon.waitForBackupTime()
  }

  @Test(arguments: [1, 5, 20]) func `a backup that is not read to its end is not recorded`(rows: Int) throws {
    let daemon = try started()
    try read(rows, of: daemon)
    // The daemon has noticed the end of the connection once it is not counted any more.
    try daemon.waitForStatus("connections", "1")
    try expectNoTime(daemon)
  }

  @Test func `a small backup that lies in the socket unread is not recorded`() throws {
    let daemon = try DaemonUnderTest().start()
    try read(0, of: daemon)
    try daemon.waitForStatus("connections", "1")
    try expectNoTime(daemon)
  }

  /// Without rows, the whole backup lies in the socket.
  @Test(arguments: [0, 1, 5, 20]) func `a request behind a backup that is not read to its end is still carried out`(
    rows: Int
  ) throws {
    let daemon = try rows == 0 ? DaemonUnderTest().start() : started()
    try read(rows, of: daemon, before: "account set alice\n")
    try daemon.waitForStatus("connections", "1")
    #expect(try daemon.ask("account") == "OK alice")
    try expectNoTime(daemon)
  }

  /// Asks for a backup, reads so many rows of it, and closes. Before any row is read, waits until all of it is sent.
  ///
  /// - Parameter request: a request behind the backup.
  private func read(_ rows: Int, of daemon: DaemonUnderTest, before request: String = "") throws {
    let client = try daemon.client()
    try client.send("backup key=\(backupKey)\n\(request)")
    for _ in 0..<rows { #expect(try client.line()?.hasPrefix("* data=") == true) }
    guard rows == 0 else { return }
    let deadline = Date(timeIntervalSinceNow: patience)
    while try !daemon.client().ask("stats").contains("* connections=1 state=sending") {
      guard Date() < deadline else { throw Failure("the backup was not sent") }
    }
  }

  @Test func `a backup of a store that cannot be written is not recorded, and no failure`() throws {
    let daemon = try DaemonUnderTest().start()
    #expect(try daemon.ask("get installation").hasPrefix("OK "))
    daemon.end()
    let mount = #"mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@""#
    try daemon.start(through: ["unshare", "--mount", "sh", "-c", mount, daemon.state.path])
    #expect(try daemon.client().statusValue("store") == "read-only")
    #expect(try !daemon.backup().isEmpty)
    #expect(try !daemon.backup().isEmpty)
    try expectNoTime(daemon)
    #expect(try daemon.client().statusValue("store") == "read-only")
  }

  @Test func `a backup of a sealed store is not recorded, and no failure`() throws {
    let daemon = try DaemonUnderTest().start()
    #expect(try daemon.ask("seal") == "OK")
    #expect(try !daemon.backup().isEmpty)
    #expect(try !daemon.backup().isEmpty)
    try expectNoTime(daemon)
  }

  @Test func `a restore does not bring the time of another store`() throws {
    let old = try DaemonUnderTest().start()
    _ = try old.backup()
    _ = try old.waitForBackupTime()
    let backup = try old.backup()
    let new = try DaemonUnderTest().start()
    #expect(try new.restore(backup, "adopt-device=yes").last?.hasPrefix("OK ") == true)
    #expect(try time(new) == nil)
  }

  @Test func `identityctl takes a backup that is recorded`() throws {
    let daemon = try DaemonUnderTest().start()
    let file = daemon.folder.appending(path: "file").path
    let taken = try identityctl(at: daemon.socket, ["backup", "--passphrase-fd=3", file])
    #expect(taken.status == 0, "\(taken)")
    let time = try daemon.waitForBackupTime()
    #expect(try identityctl(daemon, "status").output.contains("last-backup"))
    #expect(try identityctl(daemon, "status", "--json").output.contains("\"last-backup\":\"\(time)\""))
  }
}
