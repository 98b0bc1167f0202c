import Foundation
import TestSupport
import Testing

/// Manifests, with a real daemon that watches real folders (identityd-protocol(7), section "WHO IS ASKING").
/// SystemTests has the tests that need a systemd unit.
@Suite(.enabled(if: isRoot, "acting as two users needs root"), .tags(.threads)) struct ManifestTests {
  private let daemon: DaemonUnderTest
  /// The folders of manifests, most important first.
  private let folders: [URL]

  init() throws {
    let daemon = try DaemonUnderTest()
    self.daemon = daemon
    folders = ["etc", "run", "local", "usr"].map { daemon.folder.appending(path: $0) }
    for folder in folders.dropFirst() {
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }
  }

  private func start() throws {
    let lines = folders.map { "Directories=\($0.path)\n" }.joined()
    try daemon.start(configuration: "[Apps]\n\(lines)")
  }

  private func file(_ app: String, in folder: Int) -> URL { folders[folder].appending(path: "\(app).app") }

  private func write(_ text: String, _ app: String, in folder: Int = 3) throws {
    try FileManager.default.createDirectory(at: folders[folder], withIntermediateDirectories: true)
    try Data(text.utf8).write(to: file(app, in: folder), options: .atomic)
  }

  private func remove(_ app: String, in folder: Int = 3) throws {
    try FileManager.default.removeItem(at: file(app, in: folder))
  }

  /// Removes a manifest and tells the daemon that the app is gone, as the removal of its package does.
  private func uninstall(_ app: String) throws {
    try remove(app)
    #expect(try daemon.ask("app forget \(app)") == "OK")
  }

  /// Returns the apps in force, each as `ID vendor=V manifest=M`.
  private func apps() throws -> [String] {
    try daemon.client().ask("app list").dropLast().filter { !$0.contains(" suspended=") }.map { line in
      line.split(separator: " ").dropFirst().filter { !$0.hasPrefix("installed=") }.joined(separator: " ")
    }
  }

  private func waitForApps(_ wanted: [String]) throws {
    let deadline = Date(timeIntervalSinceNow: patience)
    while try apps() != wanted {
      guard Date() < deadline else { throw Failure("\(try apps()) is not \(wanted): \(daemon.log)") }
      usleep(20_000)
    }
  }

  /// Runs `identityctl` as another user, and returns its output with its errors.
  private func ask(_ words: String..., as user: Int) throws -> String {
    let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
    let outcome = try run(
      ["setpriv", "--reuid=\(user)", "--regid=\(user)", "--clear-groups", program] + words,
      environment: ["IDENTITYD_SOCKET": daemon.socket])
    return (outcome.output + outcome.errors).trimmingCharacters(in: .newlines)
  }

  // The users of Debian's base-passwd that these tests act as.
  private let daemonUser = 1
  private let mailUser = 8

  @Test func `an app is installed with its manifest, suspended without it, and uninstalled by an admin`() throws {
    try start()
    let subscriber = try daemon.client()
    #expect(try subscriber.subscribe() == ["OK 1"])
    try write("[App]\nVendor=org.example\nUser=daemon\nAccessGroups=org.example.shared org.example.media\n", "player")
    #expect(try subscriber.line()?.hasPrefix("EVENT 2 app installed app=player vendor=org.example time=") == true)
    let answer = try ask("--json", "whoami", as: daemonUser)
    #expect(answer.contains("\"app\":\"player\""))
    #expect(answer.contains("\"groups\":[\"org.example.shared\",\"org.example.media\"]"))
    #expect(answer.contains("\"vendor\":\"org.example\""))
    let installation = try ask("get", "installation", as: daemonUser)
    let vendor = try ask("get", "vendor", as: daemonUser)
    _ = try (subscriber.line(), subscriber.line())
    try remove("player")
    #expect(try subscriber.line()?.hasPrefix("EVENT 5 app suspended app=player vendor=org.example ") == true)
    #expect(try ask("whoami", as: daemonUser) == "user:1")
    #expect(try ask("get", "installation", as: daemonUser) != installation)
    _ = try (subscriber.line(), subscriber.line())
    try write("[App]\nVendor=org.example\nUser=daemon\n", "player")
    #expect(try subscriber.line()?.hasPrefix("EVENT 8 app resumed app=player vendor=org.example ") == true)
    #expect(try ask("get", "installation", as: daemonUser) == installation)
    #expect(try daemon.ask("app forget player").hasPrefix("ERR conflict "))
    // The daemon reads the manifests before it answers, however short the time since the change.
    try remove("player")
    #expect(try daemon.ask("app forget player") == "OK")
    #expect(try subscriber.line()?.hasPrefix("EVENT 9 app suspended app=player vendor=org.example ") == true)
    let gone = "cause=uninstalled"
    let ended = "EVENT 10 installation ended value=\(installation) \(gone) app=player vendor=org.example time="
    #expect(try subscriber.line()?.hasPrefix(ended) == true)
    #expect(try subscriber.line()?.hasPrefix("EVENT 11 app uninstalled app=player vendor=org.example ") == true)
    let deserted = "EVENT 12 vendor ended value=\(vendor) \(gone) vendor=org.example time="
    #expect(try subscriber.line()?.hasPrefix(deserted) == true)
    #expect(try daemon.ask("app forget player").hasPrefix("ERR not-found "))
  }

  @Test func `a suspended app keeps everything over a restart of the daemon`() throws {
    try write("[App]\nUser=daemon\n", "player")
    try start()
    let installation = try ask("get", "installation", as: daemonUser)
    daemon.end()
    let manifest = try String(contentsOf: file("player", in: 3), encoding: .utf8)
    try remove("player")
    for _ in 0..<2 {
      try start()
      let rows = try daemon.client().ask("app list").filter { $0.contains(" suspended=") }
      #expect(rows.map { $0.hasPrefix("* player vendor=player installed=") } == [true])
      #expect(try daemon.uuid("get installation app=player") == installation)
      daemon.end()
    }
    try write(manifest, "player")
    try start()
    #expect(try ask("get", "installation", as: daemonUser) == installation)
    #expect(try daemon.client().ask("app list").contains { $0.contains(" suspended=") } == false)
  }

  @Test func `a renamed app keeps identifiers, items, versions and tokens over its new manifest and a restart`() throws
  {
    try write("[App]\nVendor=org.example\nUser=daemon\nDeviceIdentifier=app\n", "old")
    try start()
    let old = try PeerConnection(daemonUser, of: daemon)
    func identifiers(of connection: PeerConnection) throws -> [String] {
      try ["installation", "vendor", "device"].map { level in
        let words = try connection.ask("get \(level)")[0].split(separator: " ")
        return words.prefix(3).joined(separator: " ")
      }
    }
    let values = try identifiers(of: old)
    #expect(values.allSatisfy { $0.hasPrefix("OK ") })
    #expect(try old.ask("item put service=s account=a data=c2VjcmV0") == ["OK created"])
    #expect(try old.ask("item put service=s account=b data=QQ== lifetime=installation") == ["OK created"])
    #expect(try old.ask("version report 1")[0].hasPrefix("OK installed 1"))
    #expect(try old.ask("version claim migration") == ["OK first"])
    #expect(try old.ask("token put fcm T")[0].hasPrefix("OK created "))
    let last = try #require(Int(daemon.client().statusValue("last-event") ?? ""))
    let subscriber = try daemon.client()
    #expect(try subscriber.subscribe("").last == "OK \(last)")
    // As a package manager does: the new file comes before the old one goes.
    try write("[App]\nVendor=org.example\nUser=daemon\nDeviceIdentifier=app\nReplaces=old\n", "new")
    let fault = "\(file("new", in: 3).path): Replaces=old: \(file("old", in: 3).path) is still there; remove that file"
    let deadline = Date(timeIntervalSinceNow: patience)
    while try !daemon.client().ask("status").contains(where: { $0.contains("manifest-fault=") && $0.contains(fault) }) {
      guard Date() < deadline else { throw Failure("no such fault: \(daemon.log)") }
      usleep(20_000)
    }
    #expect(try apps() == ["old vendor=org.example manifest=yes"])
    try remove("old")
    let event = "EVENT \(last + 1) app replaced app=new vendor=org.example previous=old time="
    #expect(try subscriber.line()?.hasPrefix(event) == true)
    for _ in 0..<2 {
      #expect(try apps() == ["new vendor=org.example manifest=yes"])
      #expect(try daemon.client().statusValue("last-event") == "\(last + 1)")
      #expect(try daemon.client().statusValue("manifest-fault") == nil)
      let new = try PeerConnection(daemonUser, of: daemon)
      #expect(try identifiers(of: new) == values)
      #expect(try new.ask("item read service=s account=a group=new")[0].contains("c2VjcmV0"))
      #expect(try new.ask("item find").count == 3)
      #expect(try new.ask("version history")[0].hasPrefix("* 1 "))
      #expect(try new.ask("version claim migration") == ["OK again"])
      #expect(try new.ask("token get fcm")[0].hasPrefix("OK T "))
      #expect(try daemon.ask("app forget old").hasPrefix("ERR not-found "))
      daemon.end()
      try start()
    }
    try uninstall("new")
    #expect(try daemon.client().ask("item find group=new").count == 2)
  }

  @Test func `a manifest gives its app the right fleet, which an open connection loses with the manifest`() throws {
    try write("[App]\nUser=daemon\nRights=fleet\n", "fleet")
    try write("[App]\nUser=mail\n", "plain")
    try start()
    let fleet = try PeerConnection(daemonUser, of: daemon)
    let plain = try PeerConnection(mailUser, of: daemon)
    #expect(try fleet.ask("whoami")[0].hasSuffix(" rights=fleet admin=no"))
    #expect(try plain.ask("whoami")[0].contains("rights=") == false)
    #expect(try fleet.ask("account set alice") == ["OK"])
    #expect(try fleet.ask("devices put 557e5958-d390-4cbf-b928-2a2b19a1399a name=desk") == ["OK"])
    let before = try daemon.uuid("get device")
    #expect(try fleet.ask("renew device")[0].hasSuffix(" previous=\(before)"))
    #expect(try fleet.ask("renew installation")[0].hasPrefix("ERR denied "))
    #expect(try fleet.ask("seal")[0].hasPrefix("ERR denied "))
    let lacking = "ERR denied plain (uid 8) lacks admin rights or Rights=fleet in its manifest"
    #expect(try plain.ask("account set bob") == [lacking])
    // The right survives a restart of the daemon with the app's record, and ends with the setting.
    daemon.end()
    try daemon.start()
    let again = try PeerConnection(daemonUser, of: daemon)
    #expect(try again.ask("account set bob") == ["OK"])
    try write("[App]\nUser=daemon\n", "fleet")
    let deadline = Date(timeIntervalSinceNow: patience)
    while try again.ask("whoami")[0].contains("rights=") {
      guard Date() < deadline else { throw Failure("the right stays: \(daemon.log)") }
      usleep(20_000)
    }
    #expect(try again.ask("account clear")[0].hasPrefix("ERR denied fleet "))
  }

  @Test func `uninstalling an app ends its own identifiers and keeps the shared ones`() throws {
    try write("[App]\nVendor=org.example\nUser=daemon\nDeviceIdentifier=app\n", "player")
    try write("[App]\nVendor=org.example\nUser=mail\nDeviceIdentifier=vendor\n", "reader")
    try start()
    func identifiers(_ user: Int) throws -> [String] {
      try ["installation", "vendor", "device"].map { try ask("get", $0, as: user) }
    }
    let player = try identifiers(daemonUser)
    let reader = try identifiers(mailUser)
    let shared = try daemon.uuid("get device")
    #expect(player[1] == reader[1])
    #expect(Set([player[0], reader[0], player[1], player[2], reader[2], shared]).count == 6)
    // Uninstalls one of two apps: the vendor's identifier stays.
    try uninstall("player")
    try waitForApps(["reader vendor=org.example manifest=yes"])
    try write("[App]\nVendor=org.example\nUser=daemon\nDeviceIdentifier=app\n", "player")
    try waitForApps(["player vendor=org.example manifest=yes", "reader vendor=org.example manifest=yes"])
    let again = try identifiers(daemonUser)
    #expect(again[0] != player[0])
    #expect(again[1] == player[1])
    #expect(again[2] == player[2])
    // Uninstalls both apps: the vendor's identifier ends, the device identifiers stay.
    try uninstall("player")
    try uninstall("reader")
    try waitForApps([])
    try write("[App]\nVendor=org.example\nUser=mail\nDeviceIdentifier=vendor\n", "reader")
    try waitForApps(["reader vendor=org.example manifest=yes"])
    let last = try identifiers(mailUser)
    #expect(last[0] != reader[0])
    #expect(last[1] != reader[1])
    #expect(last[2] == reader[2])
    #expect(try daemon.uuid("get device") == shared)
    // The history keeps the identifiers of both installations.
    #expect(try daemon.client().ask("history installation app=player").count == 3)
  }

  @Test func `replacing a manifest, or removing it only briefly, does not reinstall the app`() throws {
    try write("[App]\nUser=daemon\n", "player")
    try start()
    let installation = try ask("get", "installation", as: daemonUser)
    let before = try daemon.client().ask("status").first { $0.hasPrefix("* last-event=") }
    try write("[App]\nUser=daemon\n# newer\n", "player")
    try remove("player")
    try write("[App]\nUser=daemon\n# newer still\n", "player", in: 2)
    // A later marker: once `reader` is installed, the daemon has processed all earlier changes.
    try write("[App]\nUser=mail\n", "reader")
    try waitForApps(["player vendor=player manifest=yes", "reader vendor=reader manifest=yes"])
    #expect(try ask("get", "installation", as: daemonUser) == installation)
    #expect(before == "* last-event=3")
    #expect(try daemon.client().ask("status").contains("* last-event=4"))
  }

  @Test func `an earlier folder overrides a later one, and a link to dev null masks an app`() throws {
    try write("[App]\nVendor=usr\n", "player", in: 3)
    try start()
    try waitForApps(["player vendor=usr manifest=yes"])
    // This folder did not exist at the start.
    try write("[App]\nVendor=etc\n", "player", in: 0)
    try waitForApps(["player vendor=etc manifest=yes"])
    try FileManager.default.removeItem(at: folders[0])
    try waitForApps(["player vendor=usr manifest=yes"])
    try FileManager.default.createSymbolicLink(atPath: file("player", in: 1).path, withDestinationPath: "/dev/null")
    try waitForApps([])
    try remove("player", in: 1)
    try waitForApps(["player vendor=usr manifest=yes"])
  }

  @Test func `changes made while no daemon ran are found at its start`() throws {
    try write("[App]\nUser=daemon\n", "player")
    try write("[App]\nUser=mail\n", "reader")
    try start()
    let player = try ask("get", "installation", as: daemonUser)
    let reader = try ask("get", "installation", as: mailUser)
    daemon.end()
    try remove("reader")
    try daemon.start()
    #expect(try apps() == ["player vendor=player manifest=yes"])
    daemon.end()
    try write("[App]\nUser=mail\n", "reader")
    try daemon.start()
    #expect(try ask("get", "installation", as: daemonUser) == player)
    #expect(try ask("get", "installation", as: mailUser) == reader)
  }

  @Test func `a faulty manifest leaves its app unchanged and is named with its line`() throws {
    try write("[App]\nVendor=org.example\nUser=daemon\n", "player")
    try start()
    let installation = try ask("get", "installation", as: daemonUser)
    try write("[App]\nVendor=org.example\nUser=daemon\nDeviceIdentifier=nonsense\n", "player")
    let place = "\(file("player", in: 3).path):4"
    try daemon.waitForLog(place)
    #expect(try apps() == ["player vendor=org.example manifest=yes"])
    #expect(try ask("get", "installation", as: daemonUser) == installation)
    #expect(try daemon.client().ask("status").contains { $0.hasPrefix("* manifest-fault=") && $0.contains(place) })
    // A restart keeps the installation too.
    daemon.end()
    try daemon.start()
    #expect(try ask("get", "installation", as: daemonUser) == installation)
    // A new app whose manifest has a fault is not installed.
    try write("nonsense\n", "reader")
    try daemon.waitForLog("\(file("reader", in: 3).path):1")
    #expect(try apps() == ["player vendor=org.example manifest=yes"])
    try remove("reader")
    try write("[App]\nVendor=org.example\nUser=daemon\n", "player")
    try daemon.waitForLog("in order again")
    #expect(try !daemon.client().ask("status").contains { $0.hasPrefix("* manifest-fault=") })
  }

  @Test func `of two manifests that claim one user neither applies, and both are named`() throws {
    try write("[App]\nUser=daemon\n", "player")
    try start()
    let installation = try ask("get", "installation", as: daemonUser)
    try write("[App]\nUser=daemon\n", "thief")
    try daemon.waitForLog("neither app is served")
    let fault = try #require(try daemon.client().ask("status").first { $0.hasPrefix("* manifest-fault=") })
    #expect(fault.contains(file("player", in: 3).path) && fault.contains(file("thief", in: 3).path))
    #expect(try ask("whoami", as: daemonUser) == "user:1")
    // The installed app stays installed. The new one is not installed.
    #expect(try apps() == ["player vendor=player manifest=yes"])
    try remove("thief")
    try daemon.waitForLog("in order again")
    #expect(try ask("get", "installation", as: daemonUser) == installation)
  }

  @Test func `an unreadable folder leaves the apps unchanged and is reported`() throws {
    try write("[App]\nUser=daemon\n", "player")
    try start()
    let installation = try ask("get", "installation", as: daemonUser)
    try FileManager.default.removeItem(at: folders[2])
    try Data().write(to: folders[2])
    try remove("player")
    try daemon.waitForLog("the installed apps stay as they are")
    #expect(try ask("get", "installation", as: daemonUser) == installation)
    #expect(
      try daemon.client().ask("status").contains {
        $0.hasPrefix("* manifest-fault=") && $0.contains(folders[2].path)
      })
    // After a fault, the daemon reads the folders again by itself.
    try FileManager.default.removeItem(at: folders[2])
    try FileManager.default.createDirectory(at: folders[2], withIntermediateDirectories: true)
    try waitForApps([])
  }

  @Test func `the daemon's own reads of the folders do not wake it`() throws {
    for number in 0..<20 { try write("[App]\nVendor=org.example\n", "app\(number)") }
    try start()
    let used = { () throws -> UInt64 in
      let text = try String(contentsOfFile: "/proc/\(self.daemon.process.processIdentifier)/stat", encoding: .utf8)
      let fields = text.split(separator: ")").last?.split(separator: " ") ?? []
      return (UInt64(fields[11]) ?? 0) + (UInt64(fields[12]) ?? 0)
    }
    let before = try used()
    usleep(500_000)
    // In clock ticks of 10 ms. A busy loop would use all fifty.
    #expect(try used() - before < 10)
  }

  @Test func `row 40e: an app that was suspended while connected gets no identifier`() throws {
    try write("[App]\nUser=daemon\n", "player")
    try start()
    let player = try OtherUser(daemonUser, of: daemon)
    #expect(try player.ask("get installation").hasPrefix("OK "))
    try remove("player")
    try waitForApps([])
    #expect(try player.ask("get installation").hasPrefix("ERR not-found "))
    #expect(try player.ask("get vendor").hasPrefix("ERR not-found "))
    #expect(try player.ask("get device").hasPrefix("ERR not-found "))
    #expect(try apps() == [])
    try player.end()
  }

  @Test func `app forget removes an app without a manifest, called by the app or by an admin`() throws {
    try write("[App]\nUser=mail\n", "reader")
    try start()
    let first = try ask("get", "installation", as: daemonUser)
    #expect(try ask("--yes", "app", "forget", "user:0", as: daemonUser).contains("(denied)"))
    #expect(try ask("--yes", "app", "forget", "user:1", as: daemonUser) == "")
    #expect(try ask("get", "installation", as: daemonUser) != first)
    #expect(try daemon.ask("app forget user:1") == "OK")
    #expect(try daemon.ask("app forget user:1").hasPrefix("ERR not-found "))
    #expect(try daemon.ask("app forget reader").hasPrefix("ERR conflict "))
  }
}
