import Foundation
import TestSupport
import Testing

/// Migration, renewal, history, and the devices of an account (identityd-protocol(7), section "IDENTIFIERS").
struct MigrationTests {
  private let old = "557e5958-d390-4cbf-b928-2a2b19a1399a"
  private let other = "2ed6657d-e927-568b-95e1-2665a8aea6a2"

  @Test func `migrate without commit=yes reports its effect and changes nothing`() throws {
    let daemon = try DaemonUnderTest().start()
    #expect(try daemon.ask("migrate device \(old)") == "OK \(old) changed=yes committed=no previous=\"\"")
    #expect(try daemon.client().ask("history device") == ["OK 0"])
    #expect(try daemon.client().ask("status").contains("* last-event=1"))
    #expect(try daemon.uuid("get device") != old)
  }

  @Test(arguments: ["device", "installation"])
  func `migrate sets an identifier only before one was given out`(level: String) throws {
    let daemon = try DaemonUnderTest().start()
    let spelling = "557E5958D3904CBFB9282A2B19A1399A"
    #expect(
      try daemon.ask("migrate \(level) \(spelling) commit=yes")
        == "OK \(old) changed=yes committed=yes previous=\"\"")
    let answer = try daemon.ask("get \(level)")
    #expect(answer.hasPrefix("OK \(old) level=\(level) ") && answer.hasSuffix("origin=migrated"))
    // The same value is no change, in any spelling.
    for value in [old, spelling, old.uppercased()] {
      #expect(
        try daemon.ask("migrate \(level) \(value) commit=yes") == "OK \(old) changed=no committed=yes previous=\(old)")
    }
    for commit in ["", " commit=yes"] {
      #expect(try daemon.ask("migrate \(level) \(other)\(commit)").hasPrefix("ERR conflict "))
      for value in ["nonsense", "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"] {
        #expect(try daemon.ask("migrate \(level) \(value)\(commit)").hasPrefix("ERR invalid-uuid "))
      }
    }
    daemon.end(with: SIGKILL)
    try daemon.start()
    #expect(try daemon.uuid("get \(level)") == old)
  }

  @Test(.enabled(if: isRoot, "acting as two users needs root"))
  func `an admin may force a migration, which also updates events, history and devices`() throws {
    let daemon = try DaemonUnderTest().start()
    let before = try daemon.uuid("get device")
    let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
    let denied = try run(
      ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program, "migrate", "device", old, "force=yes"],
      environment: ["IDENTITYD_SOCKET": daemon.socket])
    #expect(denied.status == 15)
    let subscriber = try daemon.client()
    #expect(try subscriber.subscribe("since=3") == ["OK 3"])
    #expect(
      try daemon.ask("migrate device \(old) commit=yes force=yes")
        == "OK \(old) changed=yes committed=yes previous=\(before)")
    let changed = "EVENT 4 device changed value=\(old) previous=\(before) cause=migrated time="
    #expect(try subscriber.line()?.hasPrefix(changed) == true)
    #expect(try subscriber.line()?.hasPrefix("EVENT 5 devices replaced value=\(old) previous=\(before) ") == true)
    let devices = try daemon.client().ask("devices")
    #expect(devices.count == 2 && devices[0].hasPrefix("* \(old) self=yes "))
    #expect(try daemon.ask("resolve \(before)") == "OK device current=no now=\(old)")
    #expect(try daemon.ask("resolve \(old)") == "OK device current=yes")
    let history = try daemon.client().ask("history device")
    try #require(history.count == 3)
    #expect(history[0].hasPrefix("* \(before) from="))
    #expect(history[0].contains(" until=") && history[0].contains(" cause=first-use ended=migrated "))
    #expect(history[0].hasSuffix(" by=uid:0"))
    #expect(history[1].hasPrefix("* \(old) from=") && !history[1].contains(" until="))
    #expect(history[1].contains(" cause=migrated ") && history[1].hasSuffix(" by=uid:0"))
    #expect(history[2] == "OK 2")
    daemon.end(with: SIGKILL)
    try daemon.start()
    #expect(try daemon.client().ask("history device") == history)
    #expect(try daemon.client().ask("devices") == devices)
  }

  @Test(.enabled(if: isRoot, "renewal takes an admin"))
  func `renew gives out a new identifier, and a dry run names the old one`() throws {
    let daemon = try DaemonUnderTest().start()
    let device = try daemon.uuid("get device")
    let installation = try daemon.uuid("get installation")
    #expect(try daemon.client().ask("renew device dry-run=yes") == ["* device \(device)", "OK 1"])
    #expect(
      try daemon.client().ask("renew installation dry-run=yes") == [
        "* installation \(installation) app=user:0", "OK 1",
      ])
    #expect(try daemon.uuid("get device") == device)
    let answer = try daemon.ask("renew device")
    #expect(answer.hasSuffix("previous=\(device)"))
    #expect(try daemon.uuid("get device") != device)
    #expect(try daemon.uuid("get installation") == installation)
    #expect(try daemon.ask("renew nonsense").hasPrefix("ERR bad-argument "))
    #expect(try daemon.ask("renew session").hasPrefix("ERR bad-argument "))
  }

  @Test(.enabled(if: isRoot, "the bridge's verbs take an admin"))
  func `a bridge can maintain the list of devices`() throws {
    let daemon = try DaemonUnderTest().start()
    let own = try daemon.uuid("get device")
    let bridge = try daemon.client()
    let seen = "2026-11-21T08:39:12.345Z"
    #expect(try bridge.ask("devices put \(other) name=\"my laptop\" seen=\(seen)") == ["OK"])
    #expect(try bridge.ask("devices put \(old)") == ["OK"])
    #expect(try bridge.ask("devices put \(old)") == ["OK"])
    #expect(try bridge.ask("devices put \(old) name=phone") == ["OK"])
    let rows = try bridge.ask("devices")
    try #require(rows.count == 4 && rows[3] == "OK 3")
    #expect(rows[0].hasPrefix("* \(own) self=yes added="))
    #expect(rows[1].hasPrefix("* \(other) self=no name=\"my laptop\" seen=\(seen) added="))
    #expect(rows[2].hasPrefix("* \(old) self=no name=phone added="))
    #expect(try bridge.ask("devices remove \(own)").first?.hasPrefix("ERR conflict ") == true)
    #expect(try bridge.ask("devices remove \(other)") == ["OK"])
    #expect(try bridge.ask("devices remove \(other)").first?.hasPrefix("ERR not-found ") == true)
    daemon.end(with: SIGKILL)
    try daemon.start()
    #expect(try daemon.client().ask("devices") == [rows[0], rows[2], "OK 2"])
    #expect(try daemon.ask("migrate device \(old) force=yes").hasPrefix("ERR conflict "))
    // The first account keeps the listed devices. The next account begins with this device alone.
    #expect(try daemon.ask("account set alice") == "OK")
    #expect(try daemon.client().ask("devices").count == 3)
    #expect(try daemon.ask("account set bob") == "OK")
    #expect(try daemon.client().ask("devices") == [rows[0], "OK 1"])
    #expect(try daemon.ask("account") == "OK bob")
    #expect(try daemon.ask("account clear") == "OK")
    #expect(try daemon.ask("account") == "OK \"\"")
  }

  @Test func `identifiers of sessions, keys and boots survive restarts of the daemon`() throws {
    let daemon = try DaemonUnderTest().start()
    // Every connection belongs to this process. Outside of a service, the process is the session.
    func derived() throws -> [String] {
      try ["session", "key a", "key b", "boot"].map { try daemon.uuid("get \($0)") }
    }
    let first = try derived()
    #expect(Set(first).count == 4)
    #expect(try derived() == first)
    daemon.end(with: SIGKILL)
    try daemon.start()
    #expect(try derived() == first)
    // Another process has another session, of the same app in the same boot.
    let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
    func other(_ words: String...) throws -> String {
      try run([program] + words, environment: ["IDENTITYD_SOCKET": daemon.socket]).output
        .trimmingCharacters(in: .newlines)
    }
    #expect(try other("get", "boot") == first[3])
    #expect(try other("get", "session") != first[0])
    #expect(try other("get", "key", "a") != first[1])
    #expect(try daemon.ask("resolve \(first[0])").hasPrefix("ERR not-found "))
  }
}
