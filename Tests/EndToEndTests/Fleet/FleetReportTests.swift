import Foundation
import LinuxSystem
import TestSupport
import Testing

// Reports for a site, presence, and the join without a person.
extension FleetServiceTests {
  private func keygen(_ words: String..., in folder: URL) throws -> (setting: String, path: String) {
    let path = folder.appending(path: "key").path
    let made = try run(
      [DaemonUnderTest.binaries.appending(path: "identityctl").path, "fleet", "keygen"] + words + ["--file=\(path)"])
    guard made.status == 0 else { throw Failure(made.errors) }
    return (made.output.trimmingCharacters(in: .newlines), path)
  }

  @Test func `keygen makes keys that only their owner can read, and replaces none`() throws {
    let folder = try TemporaryFolder()
    let url = URL(filePath: folder.path)
    let (setting, path) = try keygen("site", in: url)
    #expect(setting.wholeMatch(of: /SiteKey=[A-Za-z0-9+\/]{43}=/) != nil, "\(setting)")
    let attributes = try FileManager.default.attributesOfItem(atPath: path)
    #expect(attributes[.posixPermissions] as? Int == 0o600)
    let kept = try Data(contentsOf: URL(filePath: path))
    let again = #expect(throws: Failure.self) { try self.keygen("site", in: url) }
    #expect("\(String(describing: again))".contains("exists"))
    #expect(try Data(contentsOf: URL(filePath: path)) == kept)
    try FileManager.default.removeItem(atPath: path)
    let sender = try keygen("sender", "push", in: url).setting
    #expect(sender.wholeMatch(of: /Sender=push [A-Za-z0-9+\/]{86}==/) != nil, "\(sender)")
    // The service takes both lines.
    try folder.write("identity-fleet.conf", "[Fleet]\n\(setting)\n\(sender)\n")
    let checked = try run([
      DaemonUnderTest.binaries.appending(path: "identity-fleet").path, "--check-config",
      "--config=\(folder["identity-fleet.conf"])",
    ])
    #expect(checked.status == 0 && checked.errors == "", "\(checked)")
    for (words, text) in [
      (["site"], "needs --file=PATH"), (["both", "--file=x"], "needs 'site'"),
      (["site", "a", "--file=x"], "needs 'site'"),
      (["sender", "a b", "--file=x"], "one word"),
    ] {
      let result = try run(
        [DaemonUnderTest.binaries.appending(path: "identityctl").path, "fleet", "keygen"] + words)
      #expect(result.status == 2 && result.errors.contains(text), "\(words): \(result)")
    }
  }

  @Test func `the site's key opens a report of each device`() throws {
    let broker = try BrokerUnderTest()
    let folder = try TemporaryFolder()
    let (setting, path) = try keygen("site", in: URL(filePath: folder.path))
    let devices = try fleet(["desk", "laptop"], at: broker, setting)
    #expect(try devices[1].daemon.ask("version report 1.4.2 build=9f3c").hasPrefix("OK installed "))
    try agree(devices, on: ["desk", "laptop"])
    // Devices in no account can read, too, and of another account as well.
    let other = try fleet(["phone"], at: broker, setting)[0]
    try other.wait("all reports are there") { try broker.retained("identityd/v1/site/+/+/+").count == 3 }
    let shown = try other.identityctl("fleet", "status", "--key=\(path)", "--json")
    #expect(shown.status == 0 && shown.errors == "", "\(shown)")
    let rows = try #require(try JSONSerialization.jsonObject(with: Data(shown.output.utf8)) as? [[String: Any]])
    #expect(rows.compactMap { $0["name"] as? String }.sorted() == ["desk", "laptop", "phone"])
    #expect(rows.allSatisfy { $0["status"] as? String == "ok" && $0["reported"] != nil && $0["identityd"] != nil })
    let laptop = try #require(rows.first { $0["name"] as? String == "laptop" })
    #expect(try laptop["uuid"] as? String == devices[1].daemon.uuid("get device"))
    let none = try other.identityctl("fleet", "status", "--key=\(path)", "--stale=3600", "--json")
    #expect(none.output == "[]\n", "\(none)")
    let own = path + ".new"
    let made = try other.identityctl("fleet", "keygen", "site", "--file=\(own)", "--json")
    #expect(
      try JSONSchema.faults(in: [
        ("fleet status", shown.output), ("fleet status", none.output), ("fleet keygen", made.output),
        ("fleet status", try other.identityctl("fleet", "status", "--json").output),
        ("fleet peers", try other.identityctl("fleet", "peers", "--json").output),
        ("fleet credentials", try other.identityctl("fleet", "credentials", "--json").output),
        ("account invite", try other.identityctl("account", "invite", "--json").output),
        ("fleet status", try other.identityctl("fleet", "status", "--json").output),
      ]) == "")
    let text = try other.identityctl("fleet", "status", "--key=\(path)", "--stale=0")
    #expect(text.output.split(separator: "\n").count == 3 && text.output.contains("name=desk"), "\(text)")
    // The broker shows nothing readable, and another key opens nothing.
    #expect(try !broker.retained("identityd/v1/site/+/+/+").contains { $0.contains("6465736b") })
    try FileManager.default.removeItem(atPath: path)
    _ = try keygen("site", in: URL(filePath: folder.path))
    let empty = try other.identityctl("fleet", "status", "--key=\(path)", "--json")
    #expect(empty.status == 0 && empty.output == "[]\n" && empty.errors.contains("there are no reports"), "\(empty)")
  }

  @Test func `a new setting makes a device report at once, and its removal takes the report away`() throws {
    let broker = try BrokerUnderTest()
    let folder = try TemporaryFolder()
    let (setting, path) = try keygen("site", in: URL(filePath: folder.path))
    let device = try fleet(["desk"], at: broker)[0]
    #expect(try device.daemon.ask("version report 1.4.2 build=9f3c").hasPrefix("OK installed "))
    try device.reload("Broker=mqtt://127.0.0.1:\(broker.port)\nSpread=0\n\(setting)")
    try device.wait("the report has the version") {
      try device.identityctl("fleet", "status", "--key=\(path)", "--json").output.contains("1.4.2 (9f3c)")
    }
    // Without the setting, the report leaves the broker.
    try device.reload("Broker=mqtt://127.0.0.1:\(broker.port)\nSpread=0")
    try device.wait("the topic is empty") { try broker.retained("identityd/v1/site/+/+/+").isEmpty }
  }

  @Test func `a report has the name that a device takes after another identifier`() throws {
    let broker = try BrokerUnderTest()
    let folder = try TemporaryFolder()
    let (setting, path) = try keygen("site", in: URL(filePath: folder.path))
    let device = try fleet(["desk"], at: broker)[0]
    try agree([device], on: ["desk"])
    broker.kill()
    func starts() throws -> Int { try device.daemon.client().requests("fleet open") }
    let before = try starts()
    #expect(try device.daemon.ask("renew device").hasPrefix("OK "))
    try device.wait("the service starts anew") { try starts() > before }
    // In the same run.
    #expect(try device.daemon.ask("devices name table") == "OK")
    try device.reload("\(broker.configuration)\nSpread=0\n\(setting)")
    try broker.start()
    try device.wait("the report has the name") {
      try device.identityctl("fleet", "status", "--key=\(path)", "--json").output.contains("\"name\":\"table\"")
    }
  }

  @Test func `an app that changes all the time holds nobody but itself`() throws {
    let broker = try BrokerUnderTest()
    let folder = try TemporaryFolder()
    let setting = try keygen("site", in: URL(filePath: folder.path)).setting
    let devices = try fleet(["desk", "laptop"], at: broker, setting)
    try agree(devices, on: ["desk", "laptop"])
    let (isOver, rounds) = (Locked(false), Locked(0))
    defer { isOver.withLock { $0 = true } }
    for number in 0..<4 {
      let socket = devices[0].daemon.socket
      Thread.detachNewThread {
        guard let client = try? Client(socket) else { return }
        // Many at once, so that their events come faster than the service could ask about each.
        let requests = (1...200).map { "version report \(number).\($0)\n" }.joined()
        while !isOver.withLock({ $0 }), (try? client.send(requests)) != nil {
          for _ in 1...200 where (try? client.answer()) != nil { rounds.withLock { $0 += 1 } }
        }
      }
    }
    func questions() throws -> Int { try devices[0].daemon.client().requests("version state") }
    let asked = try questions()
    for round in 1...3 {
      let before = rounds.withLock { $0 }
      #expect(try devices[0].ask("fleet status").contains("* state=live"))
      #expect(try devices[1].daemon.ask("devices name laptop\(round)") == "OK")
      try devices[0].wait(for: ["desk", "laptop\(round)"])
      try devices[0].wait("the app goes on") { rounds.withLock { $0 } > before + 100 }
    }
    // After the first change, a report waits for ten minutes.
    #expect(try questions() - asked <= 5)
  }

  @Test func `a reading ends with its broker, and the account goes on`() throws {
    let broker = try BrokerUnderTest()
    let device = try fleet(["desk"], at: broker)[0]
    try agree([device], on: ["desk"])
    #expect(try device.ask("fleet reports site=x")[0].hasPrefix("ERR bad-argument "))
    #expect(try device.ask("fleet reports")[0].hasPrefix("ERR bad-argument "))
    #expect(try device.ask("fleet reports reading=1")[0].hasPrefix("ERR not-found "))
    let site = String(repeating: "0", count: 32)
    #expect(try device.ask("fleet reports site=\(site)") == ["OK reading=1"])
    #expect(try device.ask("fleet reports site=\(site)") == ["OK reading=2"])
    #expect(try device.ask("fleet reports reading=1")[0].hasPrefix("ERR not-found "))
    broker.kill()
    try device.wait("the reading fails") {
      try device.ask("fleet reports reading=2")[0].hasPrefix("ERR unavailable ")
    }
    #expect(try device.ask("fleet reports reading=2")[0].hasPrefix("ERR not-found "))
    try broker.start()
    try agree([device], on: ["desk"])
  }

  @Test func `a broker that denies the readers' topics keeps neither the account nor the tokens from working`() throws {
    // Below the folder of the architecture, in the package mosquitto.
    let plugin = try run(["sh", "-c", "echo /usr/lib/*/mosquitto_dynamic_security.so"]).output
      .trimmingCharacters(in: .newlines)
    let folder = try TemporaryFolder()
    func rule(_ topic: String) -> String {
      "{\"acltype\":\"subscribePattern\",\"topic\":\"identityd/v1/\(topic)/#\",\"priority\":1,\"allow\":false}"
    }
    try folder.write(
      "rules",
      """
      {"defaultACLAccess":{"publishClientSend":true,"publishClientReceive":true,"subscribe":true,"unsubscribe":true},
       "groups":[{"groupname":"all","roles":[{"rolename":"all"}],"clients":[]}],"anonymousGroup":"all","clients":[],
       "roles":[{"rolename":"all","acls":[\(rule("site")),\(rule("feedback"))]}]}
      """)
    let broker = try BrokerUnderTest(
      "allow_anonymous true\nplugin \(plugin)\nplugin_opt_config_file \(folder["rules"])")
    let (site, path) = try keygen("site", in: URL(filePath: folder.path))
    let sender = Data([9] + [UInt8](repeating: 0, count: 31) + [UInt8](repeating: 1, count: 32)).base64EncodedString()
    let device = try fleet(["desk"], at: broker, "\(site)\nSender=push \(sender)")[0]
    try agree([device], on: ["desk"])
    try device.wait("the denial is logged") {
      device.log.contains("denies the subscription to identityd/v1/feedback/")
    }
    let shown = try device.identityctl("fleet", "status", "--key=\(path)")
    #expect(shown.status == 24 && shown.errors.contains("has to let the user of this device read"), "\(shown)")
    #expect(try device.ask("fleet status").contains("* state=live"))
  }

  @Test func `push tokens are read in pages, and all of them reach their sender`() throws {
    let broker = try BrokerUnderTest()
    let sender = Data([9] + [UInt8](repeating: 0, count: 31) + [UInt8](repeating: 1, count: 32)).base64EncodedString()
    let device = try fleet(["desk"], at: broker, "Sender=push \(sender)")[0]
    try agree([device], on: ["desk"])
    func size() throws -> Int { try broker.retained("identityd/v1/sender/+/+/+").first?.count ?? 0 }
    try device.wait("the sender has a message") { try size() > 0 }
    let before = try size()
    device.end(with: SIGTERM)
    let client = try device.daemon.client()
    for number in 1...256 { #expect(try client.ask("token put p\(number) t")[0].hasPrefix("OK created ")) }
    let other = try PeerConnection(8, of: device.daemon)
    #expect(try other.ask("token put fcm t")[0].hasPrefix("OK created "))
    func pages() throws -> Int { try client.requests("token list") }
    let read = try pages()
    try device.start()
    // One page for each app, and one that shows that these were all.
    try device.wait("all are read") { try pages() >= read + 3 }
    // Each token has the names of its app and its provider, in hexadecimal digits.
    try device.wait("the sender has all") { try size() > before + 257 * 2 * "user:0p1".utf8.count }
  }

  @Test func `a removed device empties its topics outside of the account`() throws {
    let broker = try BrokerUnderTest()
    let sender = Data([9] + [UInt8](repeating: 0, count: 31) + [UInt8](repeating: 1, count: 32)).base64EncodedString()
    let devices = try fleet(["desk", "laptop"], at: broker, "Sender=push \(sender)")
    try agree(devices, on: ["desk", "laptop"])
    try devices[0].wait("both tell their tokens") { try broker.retained("identityd/v1/sender/+/+/+").count == 2 }
    let laptop = try devices[1].daemon.uuid("get device")
    #expect(try devices[0].daemon.ask("devices forget \(laptop)") == "OK")
    try devices[1].wait(state: "no-account")
    try devices[0].wait("its topic is empty") { try broker.retained("identityd/v1/sender/+/+/+").count == 1 }
  }

  @Test func `check finds that the broker is away`() throws {
    let broker = try BrokerUnderTest()
    let device = try fleet(["desk"], at: broker)[0]
    try agree([device], on: ["desk"])
    try device.wait("the check is good") {
      try device.identityctl("check", "--json").output.contains("\"name\":\"fleet\",\"result\":\"ok\"")
    }
    broker.kill()
    try device.wait("the check fails") {
      let checked = try device.identityctl("check", "--json")
      return checked.status == 8 && checked.output.contains("there is no connection with mqtt://127.0.0.1")
    }
    device.end(with: SIGTERM)
    try device.wait("the check is skipped") {
      try device.identityctl("check", "--json").output.contains("\"name\":\"fleet\",\"result\":\"skipped\"")
    }
  }

  @Test func `peers are the devices that are connected`() throws {
    let broker = try BrokerUnderTest()
    let devices = try fleet(["desk", "laptop", "phone"], at: broker)
    try agree(devices, on: ["desk", "laptop", "phone"])
    try devices[0].wait("both others tell") {
      let shown = try devices[0].identityctl("fleet", "peers", "--json")
      return ["laptop", "phone"].allSatisfy { shown.output.contains("\"name\":\"\($0)\"") }
    }
    devices[2].end(with: SIGKILL)
    try devices[0].wait("one is gone") {
      let shown = try devices[0].identityctl("fleet", "peers")
      return try shown.output == "\(devices[1].daemon.uuid("get device"))\n"
    }
    try devices[0].reload("Broker=mqtt://127.0.0.1:\(broker.port)\nSpread=0\nPresence=no")
    try devices[0].wait("nobody is asked") { try devices[0].ask("fleet who")[0].contains("Presence=no") }
  }

  @Test func `an invitation among the credentials is used once, and does no harm afterwards`() throws {
    let broker = try BrokerUnderTest()
    let desk = try fleet(["desk"], at: broker)[0]
    let path = desk.daemon.folder.appending(path: "invitation").path
    #expect(try desk.identityctl("account", "invite", "--file=\(path)", "--no-passphrase").status == 0)
    let invitation = try String(contentsOf: URL(filePath: path), encoding: .utf8)
    let laptop = try FleetUnderTest("Broker=mqtt://127.0.0.1:\(broker.port)\nSpread=0")
    #expect(try laptop.daemon.ask("devices name laptop") == "OK")
    laptop.end(with: SIGTERM)
    try laptop.give("nonsense", as: "identity-fleet.invitation")
    try laptop.start()
    try laptop.wait("the fault is logged") { laptop.log.contains("not joined by the credential") }
    try laptop.wait(state: "no-account")
    laptop.end(with: SIGTERM)
    try laptop.give(invitation, as: "identity-fleet.invitation")
    try laptop.start()
    try agree([desk, laptop], on: ["desk", "laptop"])
    // A fault that passes, as a file system that is read-only for a while, ends no attempt.
    let tablet = try FleetUnderTest("Broker=mqtt://127.0.0.1:\(broker.port)\nSpread=0")
    #expect(try tablet.daemon.ask("devices name tablet") == "OK")
    tablet.end(with: SIGTERM)
    try tablet.give(invitation, as: "identity-fleet.invitation")
    // With an account, the service leaves the invitation alone.
    #expect(try tablet.daemon.ask("account set bob") == "OK")
    try tablet.start()
    try tablet.wait(state: "no-account")
    #expect(try tablet.daemon.ask("account clear") == "OK")
    tablet.daemon.end()
    let mount = #"mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@""#
    try tablet.daemon.start(through: ["unshare", "--mount", "sh", "-c", mount, tablet.daemon.state.path])
    try tablet.wait("the join fails") { tablet.log.contains("read-only") }
    tablet.daemon.end()
    try tablet.daemon.start()
    try agree([desk, laptop, tablet], on: ["desk", "laptop", "tablet"])
    #expect(try tablet.identityctl("account", "leave", "--yes").status == 0)
    try agree([desk, laptop], on: ["desk", "laptop"])
    // A device that has left does not come back by itself, also if it joined by another invitation.
    let phone = try FleetUnderTest("Broker=mqtt://127.0.0.1:\(broker.port)\nSpread=0")
    #expect(try phone.daemon.ask("devices name phone") == "OK")
    try join(phone, by: desk)
    phone.end(with: SIGTERM)
    try phone.give(invitation, as: "identity-fleet.invitation")
    try phone.start()
    try agree([desk, laptop, phone], on: ["desk", "laptop", "phone"])
    for device in [laptop, phone] {
      #expect(try device.identityctl("account", "leave", "--yes").status == 0)
      try device.wait(state: "no-account")
      device.end(with: SIGTERM)
      try device.start()
      try device.wait("the use is logged") { device.log.contains("was used before") }
      try device.wait(state: "no-account")
      #expect(try device.daemon.ask("account") == "OK \"\"")
    }
  }
}
