import Glibc
import IdentityClient
import TestSupport
import Testing

/// Tests of every request of the library, against the real daemon.
struct LibraryCallTests {
  private let other = "557e5958-d390-4cbf-b928-2a2b19a1399a"

  @Test func `identifiers of every level equal those of the daemon`() async throws {
    let daemon = try DaemonUnderTest().start()
    let client = IdentityClient(socket: daemon.socket)
    let me = try await client.ask(.whoami)
    for level in [IdentifierLevel.session, .boot, .installation, .vendor, .device] {
      let identifier = try await client.ask(.identifier(level))
      #expect(identifier.uuid.description == (try daemon.uuid("get \(level)")), "\(level)")
      #expect(identifier.level == level)
      let isStored = [IdentifierLevel.installation, .vendor, .device].contains(level)
      #expect((identifier.created != nil) == isStored)
      #expect((identifier.app == me.app) == (level != .device && level != .vendor))
    }
    let device = try await client.ask(.identifier(.device))
    #expect([.machine, .random].contains(device.origin))
    let key = try await client.ask(.key("player 1"))
    #expect(key.level == .key)
    #expect(try await client.ask(.key("player 1")) == key)
    #expect(try await client.ask(.key("player=2")).uuid != key.uuid)
  }

  @Test func `new UUIDs have the requested version`() async throws {
    let daemon = try DaemonUnderTest().start()
    let client = IdentityClient(socket: daemon.socket)
    let random = try await client.ask(.uuids(count: 10_000))
    #expect(Set(random).count == 10_000)
    #expect(random.allSatisfy { $0.bytes[6] >> 4 == 4 })
    let ordered = try await client.ask(.uuids(count: 3, version: .timeOrdered))
    #expect(ordered == ordered.sorted())
    #expect(ordered.allSatisfy { $0.bytes[6] >> 4 == 7 })
    #expect(try await client.ask(.uuids(count: 1)).count == 1)
  }

  @Test func `UUIDs can be checked and resolved, and identifiers have a history`() async throws {
    let daemon = try DaemonUnderTest().start()
    let client = IdentityClient(socket: daemon.socket)
    #expect(try await client.ask(.check(other.uppercased()))?.description == other)
    #expect(try await client.ask(.check("not=one")) == nil)
    #expect(try await client.ask(.check("")) == nil)
    let first = try await client.ask(.identifier(.installation)).uuid
    #expect(try await client.ask(.resolve(first)).isCurrent)
    let would = try await client.ask(.previewRenewal(.installation))
    #expect(would.map(\.uuid) == [first])
    #expect(would.map(\.level) == [.installation])
    #expect(would.map(\.app) == [try await client.ask(.whoami).app])
    let renewal = try await client.ask(.renew(.installation))
    #expect(renewal.previous == first)
    let resolved = try await client.ask(.resolve(first))
    #expect(!resolved.isCurrent)
    #expect(resolved.now == renewal.uuid)
    #expect(resolved.level == .installation)
    let history = try await client.ask(.history(.installation))
    #expect(history.map(\.uuid) == [first, renewal.uuid])
    #expect(history.map(\.cause) == ["first-use", "renewed"])
    #expect(history.first?.until == history.last?.from)
    #expect(history.first?.endCause == "renewed")
    #expect(history.last?.author == "uid:\(try await client.ask(.whoami).userID)")
  }

  @Test func `a migration can be a dry run, be committed and take its value from an item`() async throws {
    let daemon = try DaemonUnderTest().start()
    let client = IdentityClient(socket: daemon.socket)
    let uuid = try #require(IdentityUUID(other))
    let dry = try await client.ask(.migrate(.device, to: uuid, commits: false))
    #expect((dry.uuid, dry.isChanged, dry.isCommitted, dry.previous) == (uuid, true, false, nil))
    let done = try await client.ask(.migrate(.device, to: uuid, commits: true))
    #expect(done.isCommitted)
    #expect(try await client.ask(.identifier(.device)).uuid == uuid)
    let key = ItemPrimaryKey(service: "old", account: "installation")
    try await client.ask(.addItem(key, secret: Secret("9d2f6a519c0f4b8e8b3c5d1e5f0a7c11")))
    let migrated = try await client.ask(.migrate(.installation, from: key, commits: true))
    #expect(migrated.uuid.description == "9d2f6a51-9c0f-4b8e-8b3c-5d1e5f0a7c11")
    #expect(try await client.ask(.identifier(.installation)).origin == .migrated || migrated.isCommitted)
  }

  @Test func `an item can be added, read, changed, found and deleted`() async throws {
    let daemon = try DaemonUnderTest().start()
    let client = IdentityClient(socket: daemon.socket)
    let key = ItemPrimaryKey(service: "mail server", account: "alice=\"a\"")
    let metadata = ItemMetadata(
      label: "My mail\n", attributes: ["host": "mx1", "note": ""], isThisDeviceOnly: true, endsWithInstallation: true)
    try await client.ask(.addItem(key, secret: Secret("correct horse"), metadata))
    let item = try await client.ask(.readItem(key))
    #expect(text(item.secret) == "correct horse")
    #expect(item.entry.key.service == key.service)
    #expect(item.entry.key.account == key.account)
    #expect(item.entry.key.group == (try await client.ask(.whoami).app))
    #expect(item.entry.metadata.label == "My mail\n")
    #expect(item.entry.metadata.attributes["host"] == "mx1")
    #expect(item.entry.metadata.isThisDeviceOnly && item.entry.metadata.endsWithInstallation)
    try await client.ask(.updateItem(key, secret: Secret("battery staple"), label: "", attributes: ["host": "mx2"]))
    let changed = try await client.ask(.readItem(key))
    #expect(text(changed.secret) == "battery staple")
    #expect(changed.entry.metadata.label == nil)
    #expect(changed.entry.metadata.attributes["host"] == "mx2")
    #expect(changed.entry.modified >= changed.entry.created)
    #expect(try await client.ask(.putItem(key, secret: Secret(""))) == .replaced)
    #expect(try await client.ask(.readItem(key)).secret.count == 0)
    #expect(
      try await client.ask(.putItem(ItemPrimaryKey(service: "pin", account: "alice"), secret: Secret("1"))) == .created)
    #expect(try await client.ask(.findItems(ItemQuery(in: .all))).count == 2)
    #expect(try await client.ask(.findItems(ItemQuery(), limit: 1)).count == 1)
    #expect(try await client.ask(.findItems(ItemQuery(service: "pin"))).map(\.key.account) == ["alice"])
    #expect(try await client.ask(.findItems(ItemQuery(service: "none"))) == [])
    #expect(try await client.ask(.deleteItems(ItemQuery(key))) == 1)
    #expect(try await client.ask(.deleteItems(ItemQuery(key))) == 0)
  }

  @Test func `items are read, updated and found with their secrets by a query`() async throws {
    let daemon = try DaemonUnderTest().start()
    let client = IdentityClient(socket: daemon.socket)
    for (account, host) in [("alice", "mx1"), ("bob", "mx2"), ("carol", "mx2")] {
      let key = ItemPrimaryKey(service: "mail", account: account)
      let metadata = ItemMetadata(attributes: ["host": host])
      #expect(try await client.ask(.putItem(key, secret: Secret(account), metadata)) == .created)
    }
    let query = ItemQuery(attributes: ["host": "mx1"])
    #expect(try await client.ask(.readItem(query)).entry.key.account == "alice")
    try await client.ask(.updateItem(query, label: "home", attributes: ["host": "mx3"]))
    #expect(try await client.ask(.readItem(ItemQuery(label: "home"))).entry.metadata.attributes == ["host": "mx3"])
    #expect(await failure(client, .readItem(query)) == .notFound)
    #expect(await failure(client, .readItem(ItemQuery(service: "mail"))) == .conflict)
    #expect(await failure(client, .readItem(ItemQuery())) == .badArgument)
    let found = try await client.ask(.findSecrets(ItemQuery(service: "mail")))
    let secrets = found.map { item in
      item.secret?.withBytes { bytes in bytes.indices.map { bytes[$0] } } ?? []
    }
    #expect(secrets == ["alice", "bob", "carol"].map { Array($0.utf8) })
    #expect(found.map(\.entry) == (try await client.ask(.findItems(ItemQuery(service: "mail")))))
    #expect(try await client.ask(.findSecrets(ItemQuery(), limit: 2)).count == 2)
    #expect(try await client.ask(.findSecrets(ItemQuery(service: "none"))).isEmpty)
  }

  private func failure<Answer>(_ client: IdentityClient, _ request: IdentityRequest<Answer>) async
    -> IdentityError.Code?
  {
    do throws(IdentityError) {
      _ = try await client.ask(request)
    } catch {
      if case .refused(let code, _) = error { return code }
    }
    return nil
  }

  @Test(arguments: [0, 1, 2, 3, 4, 255, 65_536])
  func `a secret of any bytes is read back unchanged`(count: Int) async throws {
    let daemon = try DaemonUnderTest().start()
    let client = IdentityClient(socket: daemon.socket)
    let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 167 &+ $0 >> 8) }
    let key = ItemPrimaryKey(service: "bytes", account: "\(count)")
    #expect(try await client.ask(.putItem(key, secret: Secret(bytes.span))) == .created)
    let read = try await client.ask(.readItem(key)).secret
    #expect(read.withBytes { read in read.indices.allSatisfy { read[$0] == bytes[$0] } } && read.count == count)
  }

  @Test func `a report is compared in the order that it names`() async throws {
    let daemon = try DaemonUnderTest().start()
    let client = IdentityClient(socket: daemon.socket)
    // Another process is another session.
    #expect(try identityctl(daemon, "version", "report", "1.4.2").status == 0)
    #expect(try await client.ask(.previewVersion("1.4.2-rc.1", order: .semver)).state == .downgraded)
    let report = try await client.ask(.reportVersion("1.4.2.0", order: .numeric))
    #expect(report.state == .updated && report.isEqualInOrder)
    #expect(try await !client.ask(.previewVersion("1.4.3")).isEqualInOrder)
  }

  @Test func `versions can be reported, read, claimed and compared`() async throws {
    let daemon = try DaemonUnderTest().start()
    let client = IdentityClient(socket: daemon.socket)
    #expect(try await client.ask(.previewVersion("1.4.2")).state == .installed)
    #expect(try await client.ask(.versionHistory()) == [])
    let report = try await client.ask(.reportVersion("1.4.2", build: "9f3c2a1"))
    #expect((report.state, report.version, report.build, report.previous) == (.installed, "1.4.2", "9f3c2a1", nil))
    #expect(try await client.ask(.versionState()) == report)
    #expect(try await client.ask(.versionHistory()).map(\.version) == ["1.4.2"])
    #expect(try await client.ask(.versionState(of: .system)).state == .installed)
    #expect(try await client.ask(.versionHistory(of: .system)).count == 1)
    #expect(try await client.ask(.claim("migrate database")))
    #expect(try await client.ask(.claim("migrate database")) == false)
    #expect(try await client.ask(.compareVersions("1.2", "1.10")) == .less)
    #expect(try await client.ask(.compareVersions("2.0", "2.00.0")) == .equal)
    #expect(try await client.ask(.compareVersions("1.2", "1.2~rc1", order: .linux)) == .greater)
    #expect(try await client.ask(.compareVersions("1.2", build: "7", "1.2", secondBuild: "8")) == .different)
    #expect(try await client.ask(.compareVersions("1.2", build: "7", "1.2", secondBuild: "7")) == .equal)
  }

  @Test func `a proof names its audience, and no description shows it`() async throws {
    let daemon = try DaemonUnderTest().start()
    let client = IdentityClient(socket: daemon.socket)
    let proof = try await client.ask(.proof(for: "vault", lifetimeInSeconds: 60, nonce: "n"))
    #expect(proof.text.split(separator: ".").count == 3)
    #expect(!"\(proof)".contains(proof.text))
    #expect(try await client.ask(.proofKeys).hasPrefix(#"{"keys":[{"kty":"EC""#))
    await #expect(throws: IdentityError.self) { try await client.ask(.proof(for: "", lifetimeInSeconds: 60)) }
    await #expect(throws: IdentityError.self) { try await client.ask(.proof(for: "vault", lifetimeInSeconds: 59)) }
  }

  @Test func `push tokens can be put, read, invalidated and deleted`() async throws {
    let daemon = try DaemonUnderTest().start()
    let client = IdentityClient(socket: daemon.socket)
    let device = try await client.ask(.identifier(.device)).uuid
    let created = try await client.ask(.putToken("a=b c", provider: "fcm", environment: "test", topic: "news"))
    #expect((created.state, created.device, created.previous) == (.created, device, nil))
    let again = try await client.ask(.putToken("a=b c", provider: "fcm", environment: "test", topic: "news"))
    #expect(again.state == .unchanged)
    let token = try await client.ask(.token(provider: "fcm"))
    #expect((token.token, token.environment, token.topic, token.isValid) == ("a=b c", "test", "news", true))
    let replaced = try await client.ask(.putToken("second", provider: "fcm"))
    #expect((replaced.state, replaced.previous) == (.replaced, "a=b c"))
    #expect(try await client.ask(.invalidateToken("a=b c", provider: "fcm")) == false)
    #expect(try await client.ask(.invalidateToken("second", provider: "fcm")))
    #expect(try await client.ask(.token(provider: "fcm")).isValid == false)
    #expect(try await client.ask(.tokens()).map(\.token) == ["second"])
    #expect(try await client.ask(.tokens(notConfirmedForSeconds: 3_600)) == [])
    try await client.ask(.deleteToken(provider: "fcm"))
    #expect(try await client.ask(.tokens()) == [])
  }

  @Test(.enabled(if: isRoot, "only an admin reports a copy"))
  func `a token that is left to an original is valid once the provider has issued it anew`() async throws {
    let daemon = try DaemonUnderTest().start()
    let client = IdentityClient(socket: daemon.socket)
    #expect(try await client.ask(.putToken("abc", provider: "fcm")).isValid)
    #expect(try daemon.ask("fleet twin copy=yes") == "OK")
    _ = try await client.ask(.renew(.device))
    let again = try await client.ask(.putToken("abc", provider: "fcm"))
    #expect((again.state, again.isValid) == (.unchanged, false))
    let token = try await client.ask(.token(provider: "fcm"))
    #expect((token.isValid, token.isCopied) == (false, true))
    let renewed = try await client.ask(.putToken("abc", provider: "fcm", isRenewed: true))
    #expect((renewed.state, renewed.isValid) == (.replaced, true))
    #expect(try await !client.ask(.token(provider: "fcm")).isCopied)
  }

  @Test func `whoami, status and requests in words are answered`() async throws {
    let daemon = try DaemonUnderTest().start()
    let client = IdentityClient(socket: daemon.socket)
    let me = try await client.ask(.whoami)
    #expect(me.userID == geteuid())
    #expect(me.processID == getpid())
    #expect(me.isAdmin == isRoot)
    #expect(try await client.ask(.status)["store"] == "ok")
    let hello = try await client.ask(.words("hello"))
    #expect(hello.final.words.first == "identityd")
    #expect(hello.final["protocol"] == "1")
    let help = try await client.ask(.words("help", "get", "key"))
    #expect(help.rows.map(\.words) == [["get key"]])
    #expect(try await client.ask(.words(["check", "a=b"])).final.words == ["invalid"])
  }
}

/// Returns a secret as text.
func text(_ secret: Secret) -> String {
  secret.withBytes { bytes in String(decoding: bytes.indices.map { bytes[$0] }, as: UTF8.self) }
}
