import Foundation
import TestSupport
import Testing

/// Files in the state directory that the daemon's user may not read.
@Suite(.enabled(if: isRoot, "running the daemon as another user needs root")) struct UnreadableFileTests {
  private static let user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]

  /// Starts a daemon of another user, and stores an item.
  private func daemon() throws -> DaemonUnderTest {
    let daemon = try DaemonUnderTest()
    let owner = [FileAttributeKey.ownerAccountID: 65_534, .groupOwnerAccountID: 65_534]
    try FileManager.default.setAttributes(owner, ofItemAtPath: daemon.folder.path)
    try daemon.configure("")
    try daemon.start(through: Self.user)
    #expect(try daemon.ask("item put service=s account=a data=eA==") == "OK created")
    return daemon
  }

  private func setMode(_ mode: String, of name: String, _ daemon: DaemonUnderTest) throws {
    #expect(try run(["chmod", mode, daemon.state.appending(path: name).path]).status == 0)
  }

  @Test func `row 42: a master key that cannot be read locks the items, and nothing else`() throws {
    let daemon = try daemon()
    let device = try daemon.uuid("get device")
    daemon.end()
    let key = try Data(contentsOf: daemon.state.appending(path: "master.key"))
    try setMode("0000", of: "master.key", daemon)
    try daemon.start(through: Self.user)
    #expect(try daemon.uuid("get device") == device)
    #expect(try daemon.ask("get installation").hasPrefix("OK "))
    #expect(try daemon.client().statusValue("store") == "ok")
    let answer = try daemon.ask("item read service=s account=a")
    #expect(answer.hasPrefix("ERR unavailable ") && answer.contains("master.key: Permission denied"), "\(answer)")
    #expect(try daemon.ask("item put service=s account=b data=eA==").hasPrefix("ERR unavailable "))
    daemon.end()
    try setMode("0600", of: "master.key", daemon)
    #expect(try Data(contentsOf: daemon.state.appending(path: "master.key")) == key)
    try daemon.start(through: Self.user)
    #expect(try daemon.ask("item read service=s account=a").hasPrefix("OK data=eA== "))
  }

  @Test(arguments: ["witness", "witness.latest", "lock"], ["0000", "0200"])
  func `row 5: a file that only writing needs is not needed for reading`(name: String, mode: String) throws {
    let daemon = try daemon()
    let device = try daemon.uuid("get device")
    daemon.end()
    try setMode(mode, of: name, daemon)
    try daemon.start(through: Self.user)
    #expect(try daemon.uuid("get device") == device)
    #expect(try daemon.ask("item read service=s account=a").hasPrefix("OK data=eA== "))
    #expect(try daemon.client().statusValue("store") == "read-only")
    let reason = try daemon.client().statusValue("store-reason")
    #expect(reason?.contains("\(name): Permission denied; give identityd access to the file") == true)
    #expect(try daemon.ask("item put service=s account=b data=eA==").hasPrefix("ERR read-only "))
    try setMode("0600", of: name, daemon)
    try daemon.eventually("item put service=s account=b data=eA==")
    daemon.end()
    try daemon.start(through: Self.user)
    #expect(try daemon.client().statusValue("store") == "ok")
    #expect(try daemon.uuid("get device") == device)
    #expect(try daemon.ask("item find service=s") == "OK 2")
  }

  @Test(arguments: ["identityd.db", "identityd.db-wal"])
  func `row 5: a store that cannot be written is served, and written again once it can be`(name: String) throws {
    let daemon = try daemon()
    let device = try daemon.uuid("get device")
    daemon.end(with: SIGKILL)
    try setMode("0400", of: name, daemon)
    try daemon.start(through: Self.user)
    #expect(try daemon.uuid("get device") == device)
    #expect(try daemon.ask("item read service=s account=a").hasPrefix("OK data=eA== "))
    try daemon.eventually("item put service=s account=b data=eA==")
    daemon.end()
    try daemon.start(through: Self.user)
    #expect(try daemon.client().statusValue("store") == "ok")
    #expect(try daemon.ask("item find service=s") == "OK 2")
  }

  @Test(arguments: ["identityd.db", "identityd.db-wal", "store.key"])
  func `row 5: without a file that everything needs nothing is served, renamed or made up`(name: String) throws {
    let daemon = try daemon()
    let device = try daemon.uuid("get device")
    daemon.end(with: SIGKILL)
    let names = try FileManager.default.contentsOfDirectory(atPath: daemon.state.path).sorted()
    try setMode("0000", of: name, daemon)
    try daemon.start(through: Self.user)
    #expect(try daemon.client().statusValue("store") == "read-error")
    let reason = try daemon.client().statusValue("store-reason")
    #expect(
      reason?.contains("\(name): Permission denied; give identityd access to the file, then restart identityd") == true)
    for request in ["get device", "item read service=s account=a", "get installation"] {
      #expect(try daemon.ask(request).hasPrefix("ERR unavailable "), "\(request)")
    }
    daemon.end()
    #expect(try FileManager.default.contentsOfDirectory(atPath: daemon.state.path).sorted() == names)
    try setMode("0600", of: name, daemon)
    try daemon.start(through: Self.user)
    #expect(try daemon.uuid("get device") == device)
    #expect(try daemon.ask("item read service=s account=a").hasPrefix("OK data=eA== "))
  }
}
