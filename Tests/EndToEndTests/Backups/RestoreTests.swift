import Foundation
import TestSupport
import Testing

/// `restore`: the restored data, the machines that it is restored on, and the answers and events.
@Suite(.enabled(if: isRoot, "it takes an admin"), .serialized, .tags(.threads)) struct RestoreTests {
  private static let phone = "11111111-1111-4111-8111-111111111111"

  /// Starts a daemon and gives it a history. Its device identifier is not the one that derives from the machine-id.
  private func lived() throws -> DaemonUnderTest {
    let daemon = try DaemonUnderTest().start(hardware: 1)
    let client = try daemon.client()
    for request in [
      "get device", "renew device", "get installation", "renew installation", "get vendor", "account set alice",
      "devices put \(Self.phone) name=\"the phone\" seen=2026-11-21T08:39:12.345Z",
      "item put service=s account=a data=\(pair(1)) label=\(pair(1)) attr.Kind=x attr.host=mx1",
      "item put service=s account=b data=\(pair(2)) label=\(pair(2))", "item put service=s account=e data=\"\"",
      "item put service=s account=u data=\(pair(3)) label=\"ein Schlüssel\"",
      "item put service=s account=here data=\(pair(4)) this-device-only=yes",
      "item put service=s account=i data=\(pair(5)) lifetime=installation",
    ] {
      try #require(try client.ask(request).last?.hasPrefix("OK") == true, "\(request)")
    }
    return daemon
  }

  /// Returns all answers that a restore could change.
  private func told(_ daemon: DaemonUnderTest) throws -> [String: [String]] {
    let client = try daemon.client()
    var told: [String: [String]] = [:]
    for request in [
      "history device", "history installation", "history vendor", "account", "app list", "item find group=*",
      "renew device dry-run=yes",
    ] {
      told[request] = try client.ask(request)
    }
    // If this device has no identifier, this request would create one.
    if told["history device"] != ["OK 0"] { told["devices"] = try client.ask("devices") }
    told["snapshot"] = try daemon.client().subscribe("snapshot=yes")
    for row in told["item find group=*"] ?? [] where row.hasPrefix("* ") {
      let words = row.split(separator: " ").dropFirst().prefix(3).joined(separator: " ")
      told[words] = try client.ask("item read \(words)")
    }
    told["status"] = try client.ask("status").filter { row in
      ["last-event", "items", "item-bytes", "devices", "apps", "installations", "vendors", "device-origin"].contains {
        row.hasPrefix("* \($0)=")
      }
    }
    return told
  }

  private func uuids(_ daemon: DaemonUnderTest) throws -> [String] {
    try ["device", "installation", "vendor"].map { try daemon.uuid("get \($0)") }
  }

  /// Returns the events after a number, without their numbers and times.
  private func events(_ daemon: DaemonUnderTest, since: String) throws -> [String] {
    let client = try daemon.client()
    let last = try #require(try client.statusValue("last-event"))
    #expect(try client.subscribe("since=\(since)") == ["OK \(since)"])
    var told: [String] = []
    while last != since, let words = try client.line()?.split(separator: " ") {
      told.append(words.dropFirst(2).filter { !$0.hasPrefix("time=") }.joined(separator: " "))
      if words[1] == last { break }
    }
    return told
  }

  private let app = "user:\(getuid())"

  // MARK: Origin of the backup

  @Test func `a restore into the same daemon keeps the identifier and changes nothing`() throws {
    let daemon = try lived()
    let device = try daemon.uuid("get device")
    let backup = try daemon.backup()
    let before = try told(daemon)
    for options in ["", "dry-run=yes", "adopt-device=yes", "dry-run=yes adopt-device=yes"] {
      #expect(try daemon.restore(backup, options) == ["* device kept value=\(device) backup=\(device)", "OK 1"])
      #expect(try told(daemon) == before)
    }
    daemon.end(with: SIGKILL)
    try daemon.start(hardware: 1)
    #expect(try told(daemon) == before)
  }

  @Test func `after a loss of its state a machine gets everything back, with events`() throws {
    let daemon = try lived()
    let before = try told(daemon)
    let known = try uuids(daemon)
    let backup = try daemon.backup()
    daemon.end()
    try FileManager.default.removeItem(at: daemon.state)
    try daemon.start(hardware: 1)
    let empty = try told(daemon)
    let rows = [
      "* device restored value=\(known[0]) backup=\(known[0])", "* app installed app=\(app)",
      "* installation restored value=\(known[1]) app=\(app)", "* vendor restored value=\(known[2]) vendor=\(app)",
      "* account changed value=alice", "* devices added value=\(Self.phone)",
      "* item added group=\(app) service=s account=a", "* item added group=\(app) service=s account=b",
      "* item added group=\(app) service=s account=e", "* item added group=\(app) service=s account=i",
      "* item added group=\(app) service=s account=u", "* versions restored of=os", "OK 12",
    ]
    #expect(try daemon.restore(backup, "dry-run=yes") == rows)
    #expect(try told(daemon) == empty)
    let listening = try daemon.client()
    #expect(try listening.subscribe() == ["OK 1"])
    #expect(try daemon.restore(backup) == rows)
    #expect(try listening.line()?.contains(" app installed app=\(app) ") == true)
    #expect(
      try events(daemon, since: "1") == [
        "app installed app=\(app) vendor=\(app)", "device created value=\(known[0]) cause=restored",
        "devices added value=\(known[0])",
        "installation created value=\(known[1]) cause=restored app=\(app) vendor=\(app)",
        "vendor created value=\(known[2]) cause=restored vendor=\(app)", "account changed value=alice",
        "devices added value=\(Self.phone)",
      ] + ["a", "b", "e", "i", "u"].map { "item added group=\(app) service=s account=\($0)" })
    let after = try told(daemon)
    // Items come back unchanged, with their original times.
    for (request, answer) in before where request.hasPrefix("service=") {
      #expect(after[request] == (request.contains("account=here") ? nil : answer), "\(request)")
    }
    for level in ["device", "installation", "vendor"] {
      let (old, new) = (before["history \(level)"] ?? [], after["history \(level)"] ?? [])
      // First the history as it was, then the value that was in force until the backup, then the value in force from
      // now on.
      #expect(new.dropLast(3) == old.dropLast(2))
      #expect(new.dropLast(2).last?.contains(" ended=restored ") == true)
      #expect(new.dropLast(1).last?.contains(" cause=restored origin=restored") == true)
    }
    #expect(after["app list"] == before["app list"])
    #expect(after["devices"]?.last == "OK 2")
    #expect(after["devices"]?[1] == before["devices"]?[1])
    #expect(try daemon.ask("get device").hasSuffix(" origin=restored"))
    for signal in [SIGKILL, SIGTERM] {
      #expect(try daemon.restore(backup) == ["* device kept value=\(known[0]) backup=\(known[0])", "OK 1"])
      #expect(try told(daemon) == after)
      daemon.end(with: signal)
      try daemon.start(hardware: 1)
      #expect(try told(daemon) == after)
      #expect(try daemon.client().statusValue("store") == "ok")
    }
  }

  @Test func `on other hardware items are restored, and identifiers only with adopt-device=yes`() throws {
    let old = try lived()
    let (theirs, backup) = (try uuids(old), try old.backup())
    let daemon = try DaemonUnderTest().start(hardware: 2)
    #expect(try daemon.ask("renew device").hasPrefix("OK "))
    let own = try uuids(daemon)
    let histories = try ["device", "installation", "vendor"].map { try daemon.client().ask("history \($0)") }
    let clone = [
      "* device clone value=\(own[0]) backup=\(theirs[0])", "* account changed value=alice",
      "* devices added value=\(theirs[0])", "* devices added value=\(Self.phone)",
    ]
    let items = ["a", "b", "e", "i", "u"].map { "* item added group=\(app) service=s account=\($0)" }
    #expect(try daemon.restore(backup, "dry-run=yes") == clone + items + ["OK 9"])
    #expect(try daemon.restore(backup) == clone + items + ["OK 9"])
    #expect(try uuids(daemon) == own)
    #expect(try ["device", "installation", "vendor"].map { try daemon.client().ask("history \($0)") } == histories)
    #expect(try readPair(try daemon.ask("item read service=s account=a")) == pair(1))
    let last = try daemon.client().statusValue("last-event") ?? ""
    let adopted = [
      "* device adopted value=\(theirs[0]) previous=\(own[0]) backup=\(theirs[0])",
      "* installation restored value=\(theirs[1]) previous=\(own[1]) app=\(app)",
      "* vendor restored value=\(theirs[2]) previous=\(own[2]) vendor=\(app)", "* versions restored of=os", "OK 4",
    ]
    #expect(try daemon.restore(backup, "adopt-device=yes dry-run=yes") == adopted)
    #expect(try daemon.restore(backup, "adopt-device=yes") == adopted)
    #expect(try uuids(daemon) == theirs)
    let events = try events(daemon, since: last)
    #expect(events.first == "device changed value=\(theirs[0]) previous=\(own[0]) cause=restored")
    #expect(events.count == 4)
    daemon.end(with: SIGKILL)
    try daemon.start(hardware: 2)
    #expect(try uuids(daemon) == theirs)
    #expect(try daemon.ask("resolve \(own[0])").contains("device current=no now=\(theirs[0])"))
  }

  @Test func `hardware without a serial number is recognised by its machine-id`() throws {
    let old = try lived()
    let device = try old.uuid("get device")
    let backup = try old.backup()
    old.end()
    try FileManager.default.removeItem(at: old.state)
    // Hides the hardware UUID of the real machine.
    try old.credential("identityd.hardware", "00000000-0000-0000-0000-000000000000\n")
    try old.start(through: [
      "unshare", "--mount", "sh", "-c",
      "mount -t tmpfs none /sys/class/dmi/id 2>&-; CREDENTIALS_DIRECTORY=\(old.folder.path)/credentials exec \"$@\"",
      "-",
    ])
    #expect(try old.restore(backup)[0] == "* device restored value=\(device) backup=\(device)")
  }

  // MARK: Items

  @Test func `a restore replaces changed items and brings back deleted ones, and others stay`() throws {
    let daemon = try lived()
    let backup = try daemon.backup()
    let a = try daemon.ask("item read service=s account=a")
    for request in [
      "item put service=s account=a data=\(pair(11)) label=\(pair(11))", "item delete account=b",
      "item put service=s account=new data=\(pair(12)) label=\(pair(12))",
      "item update service=s account=here label=\(pair(4))",
    ] { #expect(try daemon.ask(request).hasPrefix("OK")) }
    let last = try daemon.client().statusValue("last-event") ?? ""
    #expect(
      try daemon.restore(backup).dropFirst().map { $0.replacing(#/ (previous-)?modified=[^ ]+/#, with: "") } == [
        "* item replaced group=\(app) service=s account=a", "* item added group=\(app) service=s account=b", "OK 3",
      ])
    #expect(
      try events(daemon, since: last) == [
        "item replaced group=\(app) service=s account=a", "item added group=\(app) service=s account=b",
      ])
    #expect(try daemon.ask("item read service=s account=a") == a)
    for (account, number) in [("b", 2), ("new", 12), ("here", 4)] {
      #expect(try readPair(try daemon.ask("item read service=s account=\(account)")) == pair(number))
    }
    #expect(try daemon.restore(backup).last == "OK 1")
    daemon.end(with: SIGKILL)
    try daemon.start(hardware: 1)
    #expect(try daemon.ask("item find") == "OK 7")
  }

  @Test func `an app that is not installed gets no item of its installation, and no identifier`() throws {
    let apps = "[Apps]\nDirectories=%/apps\n"
    func install(_ daemon: DaemonUnderTest) throws {
      let folder = daemon.folder.appending(path: "apps")
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      try Data("[App]\nVendor=org.example\n".utf8).write(to: folder.appending(path: "org.example.player.app"))
    }
    let (old, daemon) = (try DaemonUnderTest(), try DaemonUnderTest())
    for each in [old, daemon] {
      try FileManager.default.createDirectory(
        at: each.folder.appending(path: "apps"), withIntermediateDirectories: true)
    }
    try install(old)
    try old.start(configuration: apps.replacing("%", with: old.folder.path))
    let installation = try old.uuid("get installation app=org.example.player")
    let item = "service=s account=a group=org.example.player"
    #expect(try old.ask("item put \(item) data=eA== lifetime=installation") == "OK created")
    #expect(try old.ask("item put service=s account=b group=org.example.player data=eA==") == "OK created")
    let backup = try old.backup()
    try daemon.start(configuration: apps.replacing("%", with: daemon.folder.path))
    let skipped = [
      "* device unknown", "* installation skipped app=org.example.player reason=\"not installed\"",
      "* item skipped group=org.example.player service=s account=a reason=\"not installed\"",
      "* item added group=org.example.player service=s account=b", "* versions restored of=os", "OK 5",
    ]
    #expect(try daemon.restore(backup, "dry-run=yes") == skipped)
    #expect(try daemon.restore(backup) == skipped)
    #expect(try daemon.ask("app list") == "OK 0")
    #expect(try daemon.ask("item read \(item)").hasPrefix("ERR not-found "))
    try install(daemon)
    try daemon.waitForLog("org.example.player is installed.")
    #expect(
      try daemon.restore(backup) == [
        "* device unknown", "* installation restored value=\(installation) app=org.example.player",
        "* item added group=org.example.player service=s account=a", "OK 3",
      ])
    #expect(try daemon.ask("item read \(item)").hasPrefix("OK data=eA== "))
    #expect(try daemon.uuid("get installation app=org.example.player") == installation)
  }

  // MARK: The account

  @Test func `the name of this device in the list comes back with its identifier`() throws {
    let daemon = try lived()
    let device = try daemon.uuid("get device")
    #expect(try daemon.ask("devices put \(device) name=desk") == "OK")
    let backup = try daemon.backup()
    daemon.end()
    try FileManager.default.removeItem(at: daemon.state)
    try daemon.start(hardware: 1)
    #expect(try daemon.restore(backup).last == "OK 12")
    #expect(try daemon.client().ask("devices").contains { $0.hasPrefix("* \(device) self=yes name=desk ") })
  }

  @Test(arguments: [true, false]) func `a restore does not mix the devices of two accounts`(adopts: Bool) throws {
    let (old, daemon) = (try lived(), try DaemonUnderTest().start(hardware: 2))
    let backup = try old.backup()
    let bobs = "22222222-2222-4222-8222-222222222222"
    for request in ["get device", "renew device", "account set bob", "devices put \(bobs)"] {
      #expect(try daemon.ask(request).hasPrefix("OK"))
    }
    #expect(try daemon.restore(backup, adopts ? "adopt-device=yes" : "").last?.hasPrefix("OK ") == true)
    #expect(try daemon.ask("account") == (adopts ? "OK alice" : "OK bob"))
    let devices = try daemon.client().ask("devices").joined()
    #expect(devices.contains(bobs) == !adopts)
    #expect(devices.contains(Self.phone) == adopts)
  }
}
