import Foundation
import TestSupport
import Testing

/// A full disk, a disk without free inodes, and an exhausted quota.
@Suite(.enabled(if: isRoot, "mounting a small file system needs root"), .tags(.seldomThreads)) struct SpaceTests {
  /// Starts a daemon whose state is on a separate file system, which disappears with the daemon.
  private func start(on options: String) throws -> DaemonUnderTest {
    let daemon = try DaemonUnderTest()
    try daemon.start(through: wrapper(daemon, options))
    return daemon
  }

  private func wrapper(_ daemon: DaemonUnderTest, _ options: String) throws -> [String] {
    try FileManager.default.createDirectory(
      at: daemon.state, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    let mount = "mount -t tmpfs -o mode=0700,\(options) tmpfs \(daemon.state.path) && exec \"$@\""
    return ["unshare", "--mount", "sh", "-c", mount, "-"]
  }

  /// Runs a command in the mount namespace of the daemon.
  @discardableResult
  private func beside(_ daemon: DaemonUnderTest, _ command: String...) throws -> String {
    let process = daemon.process.processIdentifier
    let result = try run(["nsenter", "--target", "\(process)", "--mount"] + command)
    try #require(result.status == 0, "\(result)")
    return result.output
  }

  @Test func `row 1: on a full disk acknowledged items are served, and changes work once there is room`() throws {
    let daemon = try start(on: "size=640k")
    let device = try daemon.uuid("get device")
    let client = try daemon.client()
    let secret = String(repeating: "A", count: 4_000)
    var stored = 0
    var answer = ""
    while stored < 100 {
      answer = try client.ask("item put service=s account=a\(stored) data=\(secret)").last ?? ""
      guard answer == "OK created" else { break }
      stored += 1
    }
    #expect(answer.hasPrefix("ERR no-space "))
    #expect((1..<100).contains(stored))
    for number in 0..<stored {
      #expect(try client.ask("item read service=s account=a\(number)")[0].hasPrefix("OK data=\(secret) "))
    }
    #expect(try daemon.uuid("get device") == device)
    // A deletion is written to disk too.
    #expect(try client.ask("item delete account=a0")[0].hasPrefix("ERR no-space "))
    #expect(try client.statusValue("store") == "no-space")
    // A failed rewrite leaves no draft that takes the remaining space.
    #expect(try !beside(daemon, "ls", daemon.state.path).contains("draft"))
    try beside(daemon, "mount", "-o", "remount,size=8m", daemon.state.path)
    try daemon.eventually("item put service=s account=later data=eA==")
    #expect(try client.ask("item find service=s").last == "OK \(stored + 1)")
    #expect(try client.statusValue("store") == "ok")
  }

  @Test(arguments: ["nr_inodes=2", "nr_inodes=4", "size=64k"])
  func `rows 1 and 2: a first start without room fails, names the file and does not hinder the next start`(
    options: String
  ) throws {
    let daemon = try DaemonUnderTest()
    try daemon.launch(through: wrapper(daemon, options))
    #expect(daemon.exitStatus() == 73)
    #expect(daemon.log.contains("No space left on device") || daemon.log.contains("disk is full"), "\(daemon.log)")
    #expect(daemon.log.contains(daemon.state.path))
    try daemon.start()
    #expect(try daemon.ask("get device").hasPrefix("OK "))
  }

  @Test func `row 2: without free inodes changes continue in the existing files`() throws {
    let daemon = try start(on: "nr_inodes=8")
    let device = try daemon.uuid("get device")
    #expect(try daemon.ask("item put service=s account=a data=eA==") == "OK created")
    #expect(try daemon.ask("get installation").hasPrefix("OK "))
    #expect(try daemon.uuid("get device") == device)
    #expect(try daemon.client().statusValue("store") == "ok")
    // Without a free inode, the witness cannot be written at the end. Nothing is lost by that.
    #expect(daemon.end() == 0)
    #expect(daemon.log.contains("nothing is lost"), "\(daemon.log)")
  }

  @Test func `row 2: an exhausted quota is reported, and changes work once there is room`() throws {
    let daemon = try DaemonUnderTest().start()
    let device = try daemon.uuid("get device")
    try Fault.inject("pwrite64:error=EDQUOT", into: daemon) { () throws in
      #expect(try daemon.ask("get installation").hasPrefix("ERR no-space "))
      #expect(try daemon.client().statusValue("store") == "no-space")
      #expect(try daemon.uuid("get device") == device)
    }
    try daemon.eventually("get installation")
    #expect(try daemon.client().statusValue("store") == "ok")
  }

  /// Starts a daemon whose state directory is read-only until ``remount(_:)``, in a mount namespace of its own.
  private func startReadOnly(_ daemon: DaemonUnderTest) throws {
    let mount = #"mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@""#
    try daemon.start(through: ["unshare", "--mount", "sh", "-c", mount, daemon.state.path])
  }

  private func remount(_ daemon: DaemonUnderTest) throws {
    try beside(daemon, "mount", "-o", "remount,bind,rw", daemon.state.path)
  }

  @Test func `row 20: a first start on a read-only file system serves, makes nothing up and names the reason`() throws {
    let daemon = try DaemonUnderTest()
    try FileManager.default.createDirectory(
      at: daemon.state, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    try startReadOnly(daemon)
    let client = try daemon.client()
    let reason = "there is no store yet, and \(daemon.state.path) is on a read-only file system: mount it read-write"
    for request in ["get device", "get installation", "devices", "item find", "account", "account set a"] {
      let answer = try client.ask(request).last ?? ""
      #expect(answer.hasPrefix("ERR read-only ") && answer.contains(reason), "\(request): \(answer)")
    }
    #expect(try client.ask("ping") == ["OK"])
    #expect(try client.statusValue("store") == "read-only")
    #expect(try client.statusValue("store-reason")?.contains(reason) == true)
    #expect(try FileManager.default.contentsOfDirectory(atPath: daemon.state.path) == [])
    // Nothing is left over in memory either: the next start is a first start.
    daemon.end()
    try daemon.start()
    #expect(try daemon.ask("get device").hasPrefix("OK "))
  }

  @Test(arguments: [[], ["lock"]])
  func `row 20: a store that was read-only at the start is written once its file system can be`(
    missing: [String]
  ) throws {
    let daemon = try DaemonUnderTest().start()
    let device = try daemon.uuid("get device")
    #expect(try daemon.ask("item put service=s account=a data=eA==") == "OK created")
    daemon.end(with: SIGKILL)
    for name in missing { try FileManager.default.removeItem(at: daemon.state.appending(path: name)) }
    try startReadOnly(daemon)
    #expect(try daemon.uuid("get device") == device)
    #expect(try daemon.ask("get installation").hasPrefix("ERR read-only "))
    #expect(try daemon.client().statusValue("store-reason")?.contains("mount it read-write") == true)
    try remount(daemon)
    // Without a request for a change.
    try daemon.waitForStatus("store", "ok")
    try daemon.waitForLog("changes are possible again")
    let installation = try daemon.uuid("get installation")
    #expect(try daemon.client().ask("item read service=s account=a")[0].hasPrefix("OK data=eA=="))
    let second = try DaemonUnderTest()
    try second.launch(["--state-directory", daemon.state.path])
    #expect(second.exitStatus() == 75, "the lock is exclusive: \(second.log)")
    daemon.end(with: SIGKILL)
    try daemon.start()
    #expect(try daemon.client().statusValue("store") == "ok")
    #expect(try daemon.uuid("get installation") == installation)
    #expect(try daemon.uuid("get device") == device)
  }

  @Test func `row 20: a read-only store without a witness needs a new start, which begins an epoch`() throws {
    let daemon = try DaemonUnderTest().start()
    let device = try daemon.uuid("get device")
    let epoch = try daemon.client().statusValue("epoch")
    daemon.end()
    for name in ["witness", "witness.latest"] {
      try FileManager.default.removeItem(at: daemon.state.appending(path: name))
    }
    try startReadOnly(daemon)
    #expect(try daemon.uuid("get device") == device)
    try remount(daemon)
    for _ in 0..<2 {
      let answer = try daemon.ask("get installation")
      #expect(answer.hasPrefix("ERR read-only ") && answer.contains("then restart identityd"), "\(answer)")
    }
    daemon.end()
    try daemon.start()
    #expect(try daemon.uuid("get device") == device)
    #expect(try daemon.ask("get installation").hasPrefix("OK "))
    #expect(try daemon.client().statusValue("epoch") != epoch)
  }

  @Test(arguments: [SIGTERM, SIGKILL])
  func `row 20: on a read-only file system stored data is served`(signal: Int32) throws {
    let daemon = try DaemonUnderTest().start()
    let (device, installation) = (try daemon.uuid("get device"), try daemon.uuid("get installation"))
    #expect(try daemon.ask("item put service=s account=a data=eA==") == "OK created")
    daemon.end(with: signal)
    try startReadOnly(daemon)
    #expect(try daemon.client().statusValue("store") == "read-only")
    #expect(try daemon.uuid("get device") == device)
    #expect(try daemon.uuid("get installation") == installation)
    #expect(try daemon.client().ask("item read service=s account=a")[0].hasPrefix("OK data=eA=="))
    for _ in 0..<2 { #expect(try daemon.ask("item delete account=a").hasPrefix("ERR read-only ")) }
    daemon.end()
    try daemon.start()
    #expect(try daemon.client().statusValue("store") == "ok")
    #expect(try daemon.ask("item delete account=a") == "OK 1")
  }

  @Test func `row 20: a disk that turns read-only is reported, and reads continue`() throws {
    let daemon = try DaemonUnderTest().start()
    let device = try daemon.uuid("get device")
    try Fault.inject("pwrite64:error=EROFS", into: daemon) { () throws in
      #expect(try daemon.ask("get installation").hasPrefix("ERR unknown "))
      #expect(try daemon.ask("get installation").hasPrefix("ERR read-only "))
      #expect(try daemon.client().statusValue("store") == "read-only")
      // A dry run is answered all the same.
      for dryRun in ["renew device", "app forget app=*", "app forget unused=1"] {
        let answer = try daemon.client().ask("\(dryRun) dry-run=yes").last ?? ""
        #expect(answer.hasPrefix("OK"), "\(dryRun): \(answer)")
      }
      #expect(try daemon.uuid("get device") == device)
    }
    try daemon.eventually("get installation")
  }
}
