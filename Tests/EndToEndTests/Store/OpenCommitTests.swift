import Foundation
import TestSupport
import Testing

/// A commit that is in the log and was never acknowledged, on a file system that is read-only at the next start.
@Suite(.enabled(if: isRoot, "mounting takes root"), .serialized) struct OpenCommitTests {
  /// Starts a daemon whose state is on a mount of its own.
  private func start() throws -> DaemonUnderTest {
    let daemon = try DaemonUnderTest()
    try FileManager.default.createDirectory(
      at: daemon.state, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    #expect(try run(["mount", "--bind", daemon.state.path, daemon.state.path]).status == 0)
    try daemon.start()
    return daemon
  }

  /// Writes the database of a daemon anew with pages of this length, as an earlier version made them.
  private func usePages(of length: Int, _ daemon: DaemonUnderTest) throws {
    daemon.end()
    let file = daemon.state.appending(path: "identityd.db").path
    let change = "PRAGMA journal_mode = DELETE; PRAGMA page_size = \(length); VACUUM; PRAGMA page_size"
    let result = try run(["sqlite3", "-bail", file, change])
    #expect(result.status == 0 && result.output == "delete\n\(length)\n", "\(result)")
    try daemon.start()
  }

  private func remount(_ daemon: DaemonUnderTest, _ option: String) throws {
    #expect(try run(["mount", "-o", "remount,bind,\(option)", daemon.state.path]).status == 0)
  }

  private func unmount(_ daemon: DaemonUnderTest) {
    daemon.end(with: SIGKILL)
    _ = try? run(["umount", "--lazy", daemon.state.path])
  }

  @Test(arguments: [2_048, 4_096])
  func `row 20: a start that cannot write leaves out a change of unknown outcome, and one that can decides on it`(
    pageLength: Int
  ) throws {
    let daemon = try start()
    defer { unmount(daemon) }
    try usePages(of: pageLength, daemon)
    for account in ["a", "b"] {
      #expect(try daemon.ask("item put service=s account=\(account) data=eA==") == "OK created")
    }
    let last = try daemon.client().statusValue("last-event")
    try Fault.inject("fdatasync:error=EIO", into: daemon) { () throws in
      #expect(try daemon.ask("item put service=s account=open data=eA==").hasPrefix("ERR unknown "))
      daemon.end(with: SIGKILL)
    }
    try remount(daemon, "ro")
    for _ in 0..<2 {
      try daemon.start()
      let client = try daemon.client()
      #expect(try client.statusValue("store") == "read-only")
      #expect(try client.statusValue("store-reason")?.contains("then restart identityd") == true)
      #expect(try client.statusValue("last-event") == last)
      #expect(try client.ask("item find service=s").last == "OK 2")
      #expect(try client.ask("item read service=s account=b")[0].hasPrefix("OK data=eA== "))
      #expect(try client.ask("item read service=s account=open")[0].hasPrefix("ERR not-found "))
      daemon.end(with: SIGKILL)
    }
    try remount(daemon, "rw")
    try daemon.start()
    // The write was complete, and only its sync was refused, so the change takes effect.
    #expect(try daemon.client().statusValue("store") == "ok")
    #expect(try daemon.client().ask("item find service=s").last == "OK 3")
  }

  @Test func `row 20: a start that cannot write serves all that was acknowledged`() throws {
    let daemon = try start()
    defer { unmount(daemon) }
    for number in 0..<70 { #expect(try daemon.ask("item put service=s account=a\(number) data=eA==") == "OK created") }
    daemon.end(with: SIGKILL)
    try remount(daemon, "ro")
    try daemon.start()
    #expect(try daemon.client().ask("item find service=s").last == "OK 70")
    try remount(daemon, "rw")
    try daemon.eventually("item put service=s account=later data=eA==")
    #expect(try daemon.client().ask("item find service=s").last == "OK 71")
  }

  @Test(arguments: [2_048, 4_096])
  func `row 3: a commit that cannot be recorded is not acknowledged, and a rewrite leaves it out`(
    pageLength: Int
  ) throws {
    let daemon = try DaemonUnderTest().start()
    try usePages(of: pageLength, daemon)
    #expect(try daemon.ask("item put service=s account=a data=eA==") == "OK created")
    let subscriber = try daemon.client()
    #expect(try subscriber.subscribe("item")[0].hasPrefix("OK "))
    try Fault.inject("pwrite64:error=EIO", on: "witness.latest", into: daemon) { () throws in
      #expect(try daemon.ask("item put service=s account=open data=eA==").hasPrefix("ERR unknown "))
    }
    try daemon.eventually("item put service=s account=b data=eA==")
    #expect(try daemon.client().ask("item find service=s").last == "OK 2")
    #expect(try subscriber.line()?.contains(" account=b") == true)
    daemon.end(with: SIGKILL)
    try daemon.start()
    #expect(try daemon.client().statusValue("store") == "ok")
    #expect(try daemon.client().ask("item find service=s").last == "OK 2")
  }
}
