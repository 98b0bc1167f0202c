import Foundation
import IdentityWire
import TestSupport
import Testing

/// The audiences of `status` and `stats`. Each row is shown only to the audience that the table of rows names.
@Suite(.enabled(if: isRoot, "acting as other users needs root")) struct AudienceTests {
  private let other = 4_711
  /// The ID of the group `tty` in Debian's base-passwd.
  private let tty = 5
  private let all = Set(RowAudience.allCases)
  private let daemon: DaemonUnderTest
  private var apps: String { daemon.folder.appending(path: "apps.d").path }

  init() throws { daemon = try DaemonUnderTest() }

  /// Starts the daemon with four apps and a faulty manifest. Two apps share the device identifier, one of them with the
  /// right `fleet`. Each of the other two has a device identifier for the app or for its vendor.
  private func start(_ access: String = "MonitorGroup=tty") throws {
    try FileManager.default.createDirectory(
      atPath: apps, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
    let manifests = [
      "org.example.shares": "User=mail", "org.example.own": "User=daemon\nDeviceIdentifier=app",
      "org.example.vendors": "User=bin\nDeviceIdentifier=vendor", "org.example.wrong": "User=news\nColour=red",
      "org.example.fleet": "User=games\nRights=fleet",
    ]
    for (id, text) in manifests {
      try Data("[App]\nVendor=org.example\n\(text)\n".utf8).write(to: URL(filePath: "\(apps)/\(id).app"))
    }
    try daemon.start(configuration: "[Apps]\nDirectories=\(apps)\n[Access]\n\(access)\n")
    // Runs a first job, because the metric of jobs has no series before that.
    _ = try daemon.uuid("get device")
  }

  /// Returns the names of the rows of an answer, in order.
  private func names(_ answer: [String]) throws -> [String] {
    try #require(answer.last == "OK")
    return try answer.dropLast().map { row in
      try #require(row.hasPrefix("* "), "\(row)")
      return String(row.dropFirst(2).prefix { $0 != "=" })
    }
  }

  /// Returns the names of the `status` rows that the table has for these audiences, without the rows that appear only
  /// in other states of the daemon.
  private func rows(_ audiences: Set<RowAudience>) -> [String] {
    let absent = [
      "fleet-said", "suspect", "machine-change", "master-key-reason", "sealed", "store-reason", "store-unproven",
      "store-source", "configuration-reason", "last-backup", "recovery-key", "provision-reason",
      "suspended-apps", "proof-key", "proof-key-reason",
    ]
    return StatusRow.all.filter { audiences.contains($0.audience) && !absent.contains($0.name) }.map(\.name)
  }

  /// Expects that a peer sees the rows for these audiences and no others.
  private func expect(_ peer: PeerConnection, _ audiences: Set<RowAudience>) throws {
    var told: [String] = []
    for name in try names(peer.ask("status")) where told.last != name { told.append(name) }
    #expect(told == rows(audiences))
    // There is no backup yet, and no service of the fleet.
    let absent: [Metric] = [.lastBackup, .fleetContact]
    let metrics = Metric.all.filter { audiences.contains($0.audience) && !absent.contains($0) }.map(\.name)
    var counted: [String] = []
    for name in try names(peer.ask("stats")) where counted.last != name { counted.append(name) }
    #expect(counted == metrics)
  }

  // MARK: Kinds of peers

  @Test func `status and stats show all to root and group members, and only the health to others`() throws {
    try start()
    try expect(try PeerConnection(0, of: daemon), all)
    try expect(try PeerConnection(other, group: tty, of: daemon), all)
    try expect(try PeerConnection(other, of: daemon), [.everybody])
    // Membership through a supplementary group counts too.
    let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
    let member = try run(
      ["setpriv", "--reuid=\(other)", "--regid=\(other)", "--groups=\(tty)", program, "status"],
      environment: ["IDENTITYD_SOCKET": daemon.socket])
    #expect(member.output.contains("item-bytes=0\n"), "\(member)")
  }

  @Test func `a member of the monitor group sees all apps but has no admin rights`() throws {
    try start()
    let peer = try PeerConnection(other, group: tty, of: daemon)
    #expect(try peer.ask("whoami")[0].hasSuffix("admin=no"))
    #expect(try peer.ask("stats apps=yes").contains { $0.hasPrefix("* user:0 ") })
    #expect(try peer.ask("get installation app=org.example.own")[0].hasPrefix("ERR denied "))
    #expect(try peer.ask("seal")[0].hasPrefix("ERR denied "))
    let stranger = try PeerConnection(other, of: daemon)
    #expect(try stranger.ask("stats apps=yes").filter { $0.hasPrefix("* ") }.count == 1)
  }

  @Test func `status shows no boot facts to apps that do not share the device identifier`() throws {
    try start()
    for (user, app, isTold) in [(8, "shares", true), (1, "own", false), (2, "vendors", false)] {
      let member = try PeerConnection(user, group: tty, of: daemon)
      #expect(try member.ask("whoami")[0].hasPrefix("OK org.example.\(app) "))
      try expect(member, isTold ? all : [.everybody, .monitors])
      try expect(try PeerConnection(user, of: daemon), [.everybody])
    }
  }

  @Test func `manifest faults are counted for everybody and named only for monitors`() throws {
    try start()
    let stranger = try PeerConnection(other, of: daemon).ask("status")
    #expect(stranger.contains("* manifest-faults=1"))
    #expect(!stranger.contains { $0.contains("org.example") })
    let named = try daemon.client().ask("status").filter { $0.hasPrefix("* manifest-fault=") }
    #expect(named.count == 1 && named[0].contains("org.example.wrong.app:4"), "\(named)")
  }

  @Test func `the daemon's own user may monitor the daemon, but not from inside a container`() throws {
    try FileManager.default.setAttributes([.ownerAccountID: other], ofItemAtPath: daemon.folder.path)
    let asOther = ["setpriv", "--reuid=\(other)", "--regid=\(other)", "--clear-groups"]
    try daemon.start(through: asOther)
    func status(_ wrapper: [String]) throws -> String {
      try run(asOther + wrapper + ["socat", "-t", "10", "-", "UNIX-CONNECT:\(daemon.socket)"], input: "status\n").output
    }
    #expect(try status([]).contains("* state-directory=\(daemon.state.path)\n"))
    let contained = try status(["unshare", "--user", "--map-root-user"])
    #expect(contained.contains("* store=ok\n"), "\(contained)")
    #expect(
      try names(contained.split(separator: "\n").map(String.init)) == ["version", "protocol", "store", "master-key"])
  }

  // MARK: Events

  @Test func `an app with the right fleet hears of all tokens and versions, and of nothing else of other apps`() throws
  {
    try start()
    let (fleet, plain, own) = try (
      PeerConnection(5, of: daemon), PeerConnection(8, of: daemon), PeerConnection(1, of: daemon)
    )
    for listener in [fleet, plain] { #expect(try listener.subscribe()[0].hasPrefix("OK ")) }
    for request in [
      "token put fcm do-not-tell", "version report 1.0", "item put service=s account=a data=eHg=", "get installation",
      "token invalidate fcm do-not-tell",
    ] {
      #expect(try own.ask(request)[0].hasPrefix("OK"), "\(request)")
    }
    #expect(try daemon.ask("account set alice") == "OK")
    func heard(_ listener: PeerConnection) throws -> [String] {
      var events: [String] = []
      while events.last != "account changed", let line = try listener.line() {
        #expect(!line.contains("do-not-tell"))
        events.append(line.split(separator: " ").dropFirst(2).prefix(2).joined(separator: " "))
      }
      return events
    }
    #expect(try heard(fleet) == ["token created", "version installed", "token invalidated", "account changed"])
    #expect(try heard(plain) == ["account changed"])
    // The right admits these requests, too. All other requests of the app concern its own data alone.
    #expect(try fleet.ask("token list app=*").count == 2)
    #expect(try fleet.ask("version state app=*").count == 2)
    #expect(try fleet.ask("token get fcm app=org.example.own")[0].hasPrefix("ERR denied "))
    #expect(try plain.ask("token list app=*")[0].hasPrefix("ERR denied "))
    // A replay tells the same.
    let replay = try PeerConnection(5, of: daemon)
    #expect(try replay.subscribe("token since=0")[0].hasPrefix("OK "))
    let first = try #require(try replay.line())
    #expect(first.contains(" token created app=org.example.own "), "\(first)")
  }

  // MARK: MonitorGroup=

  @Test(arguments: ["", "MonitorGroup=", "MonitorGroup=no-such-group-here"])
  func `without a valid MonitorGroup= there are no members, and the daemon serves`(access: String) throws {
    try start(access)
    try expect(try PeerConnection(other, group: tty, of: daemon), [.everybody])
    try expect(try PeerConnection(0, of: daemon), all)
    let isNamed = access.hasSuffix("here")
    if isNamed { try daemon.waitForLog("[Access] MonitorGroup=no-such-group-here: there is no such group") }
    #expect(daemon.log.contains("MonitorGroup") == isNamed, "\(daemon.log)")
  }

  @Test func `a reload changes MonitorGroup= only for connections made after it`() throws {
    try start("")
    let before = try PeerConnection(other, group: tty, of: daemon)
    try expect(before, [.everybody])
    try daemon.configure("[Apps]\nDirectories=\(apps)\n[Access]\nMonitorGroup=tty\n")
    kill(daemon.process.processIdentifier, SIGHUP)
    try daemon.waitForLog("The configuration was loaded.")
    try expect(before, [.everybody])
    try expect(try PeerConnection(other, group: tty, of: daemon), all)
  }

  // MARK: Hidden rows

  @Test func `status and stats of an app are independent of the data of other apps`() throws {
    try start()
    let stranger = try PeerConnection(other, of: daemon)
    let (root, neighbour) = (try daemon.client(), try PeerConnection(other + 1, of: daemon))
    var asked = 0
    func told() throws -> [String] {
      let answers = try ["status", "stats", "stats apps=yes"].map { try stranger.ask($0) }
      asked += answers.count
      // The peer sees the counters of its own app, including each of its requests up to this one.
      #expect(answers[2] == ["* user:\(other) connections=1 subscribers=0 requests=\(asked)", "OK 1"])
      return answers[0] + answers[1]
    }
    var subscribers: [PeerConnection] = []
    let before = try told()
    let bytes = try root.statusValue("item-bytes")
    for (step, length) in [1, 17, 4_000].enumerated() {
      let data = Data(repeating: 0x78, count: length).base64EncodedString()
      for line in [
        "get installation", "get vendor", "item put service=s account=a data=\(data)",
        "item put service=s account=b\(step) label=\(String(repeating: "l", count: step + 1)) data=\(data)",
        "version report 1.\(step)", "token put fcm token\(step)",
      ] {
        #expect(try root.ask(line)[0].hasPrefix("OK"), "\(line)")
        #expect(try neighbour.ask(line)[0].hasPrefix("OK"), "\(line)")
        #expect(try told() == before, "after \(line)")
      }
      #expect(try root.ask("account set account\(step)") == ["OK"])
      subscribers.append(try PeerConnection(other + 1, of: daemon))
      #expect(try subscribers[step].subscribe()[0].hasPrefix("OK"))
      #expect(try told() == before)
    }
    #expect(try root.ask("item delete service=s account=a")[0].hasPrefix("OK"))
    #expect(try told() == before)
    #expect(try root.statusValue("item-bytes") != bytes)
  }

  @Test func `stats --prometheus explains why a non-member gets few metrics`() throws {
    try start()
    let few = try identityctl(daemon, "stats", "--prometheus", asUser: other)
    #expect(few.status == 0)
    #expect(
      few.errors.contains("only the metrics of the daemon's health") && few.errors.contains("MonitorGroup="),
      "\(few.errors)")
    let samples = few.output.split(separator: "\n").filter { !$0.hasPrefix("#") }
    let names = Set(samples.map { $0.prefix { $0 != " " && $0 != "{" } })
    let health = ["build_info", "store_writable", "store_condition", "key_available", "manifest_faults"]
    #expect(names == Set(health.map { "identityd_\($0)" }))
    #expect(try identityctl(daemon, "stats", "--prometheus").errors == "")
  }
}
