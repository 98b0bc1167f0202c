import Foundation
import TestSupport
import Testing

/// `restore`: versions and push tokens, which belong to the device.
@Suite(.enabled(if: isRoot, "it takes an admin"), .serialized) struct RestoreVersionTests {
  private let app = "user:\(getuid())"

  /// Starts a daemon and gives it a history. Its device identifier is not the one that derives from the machine-id.
  private func lived() throws -> DaemonUnderTest {
    let daemon = try DaemonUnderTest().start(hardware: 1)
    for (request, answer) in [
      ("get device", "OK "), ("renew device", "OK "), ("version report 1.0 build=\"é a\"", "OK installed 1.0 "),
      ("version report 2.0", "OK installed 2.0 "), ("version claim \"some work\"", "OK first"),
      ("token put fcm \"to ken\" environment=e topic=t", "OK created "), ("token put apns old", "OK created "),
      ("token put apns gone", "OK replaced "), ("token invalidate apns gone", "OK invalidated"),
    ] {
      let said = try daemon.ask(request)
      try #require(said.hasPrefix(answer), "\(request): \(said)")
    }
    return daemon
  }

  private static let questions = [
    "version history", "version history of=os", "version state", "version state of=os", "token list",
    "token list app=*",
    "token get fcm",
  ]

  private func told(_ daemon: DaemonUnderTest) throws -> [String: [String]] {
    var told: [String: [String]] = [:]
    for question in Self.questions { told[question] = try daemon.client().ask(question) }
    return told
  }

  private var rows: [String] {
    [
      "* versions restored of=os", "* versions restored of=app app=\(app)", "* token added app=\(app) provider=fcm",
      "* token added app=\(app) provider=apns",
    ]
  }

  @Test func `after a loss of its state a machine gets versions and tokens back, with events`() throws {
    let daemon = try lived()
    var before = try told(daemon)
    let backup = try daemon.backup()
    daemon.end()
    try FileManager.default.removeItem(at: daemon.state)
    try daemon.start(hardware: 1)
    let restored = try daemon.restore(backup, "dry-run=yes")
    #expect(Array(restored.suffix(5).dropLast()) == rows)
    #expect(try daemon.ask("version history") == "OK 0")
    #expect(try daemon.ask("token list") == "OK 0")
    let listening = try daemon.client()
    #expect(try listening.subscribe("version token")[0].hasPrefix("OK "))
    #expect(try daemon.restore(backup) == restored)
    var news: [String] = []
    for _ in 0..<3 { news.append(try #require(try listening.line())) }
    let device = try daemon.uuid("get device")
    #expect(news[0].contains(" version installed of=app app=\(app) version=2.0 "), "\(news)")
    #expect(news[1].contains(" token created app=\(app) provider=fcm device=\(device) "), "\(news)")
    #expect(news[2].contains(" token created app=\(app) provider=apns device=\(device) "), "\(news)")
    #expect(!news.joined().contains("to ken"))
    // The system's report of the second start stays, with the installation time of the first.
    var after = try told(daemon)
    #expect(after["version state of=os"]?[0].hasPrefix("OK installed ") == true)
    func installed(_ told: [String: [String]]) -> Substring? {
      told["version history of=os"]?[0].split(separator: " ").first { $0.hasPrefix("installed=") }
    }
    #expect(installed(before) != nil && installed(after) == installed(before))
    for question in ["version state of=os", "version history of=os"] {
      after[question] = nil
      before[question] = nil
    }
    #expect(after == before)
    #expect(try daemon.ask("version claim \"some work\"") == "OK again")
    #expect(try daemon.ask("version claim other") == "OK first")
    #expect(try daemon.restore(backup).last == "OK 1")
    let last = try told(daemon)
    daemon.end(with: SIGKILL)
    try daemon.start(hardware: 1)
    #expect(try told(daemon) == last)
    #expect(try daemon.client().statusValue("store") == "ok")
  }

  @Test func `on other hardware versions and tokens are restored only with adopt-device=yes`() throws {
    let old = try lived()
    let (before, backup) = (try told(old), try old.backup())
    let daemon = try DaemonUnderTest().start(hardware: 2)
    #expect(try daemon.ask("renew device").hasPrefix("OK "))
    let own = try told(daemon)
    for options in ["dry-run=yes", ""] {
      let rows = try daemon.restore(backup, options)
      #expect(!rows.contains { $0.hasPrefix("* version") || $0.hasPrefix("* token") }, "\(rows)")
      #expect(try told(daemon) == own)
    }
    #expect(try daemon.ask("version claim \"some work\"").hasPrefix("ERR not-found "))
    let rows = try daemon.restore(backup, "adopt-device=yes")
    #expect(Array(rows.suffix(5).dropLast()) == self.rows)
    let after = try told(daemon)
    for question in ["version history", "version state", "token list", "token list app=*", "token get fcm"] {
      #expect(after[question] == before[question], "\(question)")
    }
    #expect(try daemon.ask("version claim \"some work\"") == "OK again")
    #expect(try daemon.restore(backup, "adopt-device=yes").last == "OK 1")
  }

  @Test func `later versions and tokens stay, and earlier ones from the backup are added`() throws {
    let daemon = try lived()
    let backup = try daemon.backup()
    daemon.end()
    try FileManager.default.removeItem(at: daemon.state)
    try daemon.start(hardware: 1)
    for request in ["version report 3.0", "version claim new", "token put fcm own"] {
      #expect(try daemon.ask(request).hasPrefix("OK "))
    }
    #expect(
      Array(try daemon.restore(backup).suffix(4).dropLast()) == [
        "* versions restored of=os", "* versions restored of=app app=\(app)", "* token added app=\(app) provider=apns",
      ])
    let device = try daemon.uuid("get device")
    #expect(try daemon.ask("version state").hasPrefix("OK installed 3.0 installed="))
    #expect(
      try daemon.client().ask("version history").map { $0.split(separator: " ")[1] } == ["1.0", "2.0", "3.0", "3"])
    #expect(try daemon.ask("token get fcm").hasPrefix("OK own provider=fcm app=\(app) device=\(device) state=valid "))
    #expect(
      try daemon.ask("token get apns").hasPrefix("OK gone provider=apns app=\(app) device=\(device) state=invalid "))
    #expect(try daemon.ask("version claim new") == "OK again")
    // Another version made this claim.
    #expect(try daemon.ask("version claim \"some work\"") == "OK first")
    #expect(try daemon.restore(backup).last == "OK 1")
  }

  @Test func `an app that is not installed gets no versions and no tokens`() throws {
    let player = "org.example.player"
    func daemon(with manifest: Bool) throws -> DaemonUnderTest {
      let daemon = try DaemonUnderTest()
      let apps = daemon.folder.appending(path: "apps")
      try FileManager.default.createDirectory(at: apps, withIntermediateDirectories: true)
      if manifest { try Data("[App]\nVendor=org.example\n".utf8).write(to: apps.appending(path: "\(player).app")) }
      return try daemon.start(configuration: "[Apps]\nDirectories=\(apps.path)\n")
    }
    let old = try daemon(with: true)
    for request in ["version report 1.0 app=\(player)", "token put fcm x app=\(player)"] {
      try #require(try old.ask(request).hasPrefix("OK "), "\(request)")
    }
    let backup = try old.backup()
    let without = try daemon(with: false)
    let rows = try without.restore(backup)
    #expect(rows.contains("* versions skipped of=app app=\(player) reason=\"not installed\""), "\(rows)")
    #expect(rows.contains("* token skipped app=\(player) provider=fcm reason=\"not installed\""), "\(rows)")
    #expect(try without.ask("token list app=*") == "OK 0")
    let with = try daemon(with: true)
    let taken = try with.restore(backup)
    #expect(taken.contains("* versions restored of=app app=\(player)"), "\(taken)")
    #expect(taken.contains("* token added app=\(player) provider=fcm"), "\(taken)")
    #expect(try with.ask("token get fcm app=\(player)").hasPrefix("OK x "))
  }

  /// `Fixtures/backup-1` was made on hardware 1 by the last release without versions.
  @Test func `a backup of format 1 can still be restored`() throws {
    let file = Document.root.appending(path: "Tests/EndToEndTests/Fixtures/backup-1")
    let backup = try Data(contentsOf: file)
    let daemon = try DaemonUnderTest().start(hardware: 1)
    let rows = [
      "* device restored value=09067dea-4db0-417b-995b-93d7006b4bb5 backup=09067dea-4db0-417b-995b-93d7006b4bb5",
      "* app installed app=user:0",
      "* device restored value=9df23f78-dd1c-4d49-8f55-9909f49a9902 app=org.example.player",
      "* installation skipped app=org.example.player reason=\"not installed\"",
      "* installation restored value=0be2e638-46eb-455f-a18f-111a359ee715 app=user:0",
      "* vendor skipped vendor=org.example reason=\"not installed\"",
      "* account changed value=alice", "* devices added value=557e5958-d390-4cbf-b928-2a2b19a1399a",
      "* item added group=user:0 service=mail account=one",
      "* item skipped group=org.example.shared service=mail account=three reason=\"not installed\"",
      "* item added group=user:0 service=mail account=four", "OK 11",
    ]
    #expect(try daemon.restore(backup, "dry-run=yes") == rows)
    #expect(try daemon.restore(backup) == rows)
    #expect(try daemon.uuid("get device") == "09067dea-4db0-417b-995b-93d7006b4bb5")
    #expect(try daemon.ask("item read service=mail account=one").hasPrefix("OK data=c2VjcmV0LXR3bw== "))
    #expect(try daemon.ask("item read service=mail account=four").contains(" label=\"ein Schlüssel\" "))
    #expect(try daemon.ask("version history") == "OK 0")
    let again = try daemon.backup()
    daemon.end(with: SIGKILL)
    try daemon.start(hardware: 1)
    #expect(try daemon.client().statusValue("store") == "ok")
    #expect(try daemon.restore(again).last == "OK 1")
  }
}
