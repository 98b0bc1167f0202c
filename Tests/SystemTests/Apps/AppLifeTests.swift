import Foundation
import TestSupport
import Testing

/// The life of an app: the package of `packaging/examples/app`, from its first installation until it is purged.
extension SystemTests {
  private static let app = "org.example.greeter"

  /// The data of the app at one moment.
  private struct Life: Equatable {
    /// The identifier of the app's installation.
    let installation: String
    /// The greeting of the service, which contains the same identifier.
    let greeting: String
    /// The state of the app's version, with the version.
    let version: String
    /// The app's items, each with its account and its other attributes.
    let items: [String]
    /// The push token.
    let token: String
  }

  /// Builds the package and copies it into the system.
  private func bring(_ version: String, to system: Container) async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "identityd-greeter-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(at: folder) }
    let built = try await run(
      checkout.appending(path: "packaging/examples/app/build"), [version, "--output", folder.path])
    guard built.status == 0 else { throw Failure(built.errors) }
    try await system.copy(URL(filePath: built.output.trimmingCharacters(in: .newlines)), to: package(version))
  }

  private func package(_ version: String) -> String { "/root/greeter_\(version)_all.deb" }

  private func life(on system: Container) async throws -> Life {
    func ask(_ question: String) async throws -> String { try await system.shell("identityctl \(question)") }
    let items = try await ask("item find group=\(Self.app)").split(separator: "\n").map(String.init)
    return Life(
      installation: try await ask("get installation app=\(Self.app)"),
      greeting: try await system.shell("cat /run/greeter/greeting"),
      version: try await ask("version state app=\(Self.app)"),
      items: items, token: try await ask("token get example app=\(Self.app)"))
  }

  /// Runs a script and returns the events of the app that it causes. Each has the topic and the name of the event, then
  /// the cause, the item's account, or the versions.
  private func events(of script: String, on system: Container) async throws -> [String] {
    let last = try await system.shell("identityctl subscribe")
    try await system.shell(script)
    let text = try await system.shell(
      """
      identityctl --quiet item put service=mark account=mark data=bQ==
      identityctl --json monitor --since=\(last) | sed '/"service":"mark"/q'
      identityctl --quiet item delete service=mark
      """)
    struct Event: Decodable {
      let topic: String
      let action: String
      let attributes: [String: String]

      init(from decoder: any Decoder) throws {
        // The numbers are not attributes of the event.
        let members = try decoder.singleValueContainer().decode([String: Member].self)
        attributes = members.compactMapValues(\.text)
        topic = attributes["topic"] ?? ""
        action = attributes["action"] ?? ""
      }
    }
    struct Member: Decodable {
      let text: String?
      init(from decoder: any Decoder) throws { text = try? decoder.singleValueContainer().decode(String.self) }
    }
    let particulars = [
      "installation": ["cause"], "item": ["account"], "version": ["version", "previous"],
    ]
    return try text.split(separator: "\n").compactMap { line in
      let event = try JSONDecoder().decode(Event.self, from: Data(line.utf8))
      guard event.attributes["app"] == Self.app || event.attributes["group"] == Self.app else { return nil }
      let said = (particulars[event.topic] ?? []).compactMap { event.attributes[$0] }
      return ([event.topic, event.action] + said).joined(separator: " ")
    }
  }

  @Test(arguments: Container.oldest)
  func `an app has its identifiers, versions, items and tokens from installation to purge`(suite: String) async throws {
    let system = try await Container.ready(suite)
    for version in ["1.0", "1.1"] { try await bring(version, to: system) }

    let installing = try await events(of: "dpkg --install \(package("1.0"))", on: system)
    #expect(
      installing == [
        "app installed", "installation created first-use", "item added server", "version installed 1.0",
        "item added session", "token created",
      ])
    let first = try await life(on: system)
    #expect(first.greeting == "Hello from \(first.installation)")
    #expect(first.version == "installed 1.0")
    #expect(first.items.count == 2)
    #expect(first.token == "1.0-\(first.installation)")

    // A restart changes only the state of the version.
    let restarting = try await events(of: "systemctl restart greeter.service", on: system)
    #expect(restarting == [])
    let again = try await life(on: system)
    #expect(again.version == "unchanged 1.0")
    #expect(again.items == first.items && again.token == first.token && again.greeting == first.greeting)

    let upgrading = try await events(of: "dpkg --install \(package("1.1"))", on: system)
    #expect(upgrading == ["version upgraded 1.1 1.0", "token replaced"])
    let upgraded = try await life(on: system)
    #expect(upgraded.installation == first.installation && upgraded.items == first.items)
    #expect(upgraded.version == "upgraded 1.1")
    #expect(upgraded.token == "1.1-\(first.installation)")

    let downgrading = try await events(of: "dpkg --install \(package("1.0"))", on: system)
    #expect(downgrading == ["version downgraded 1.0 1.1", "token replaced"])
    let downgraded = try await life(on: system)
    #expect(downgraded.installation == first.installation && downgraded.items == first.items)
    #expect(downgraded.version == "downgraded 1.0")
    #expect(downgraded.token == first.token)

    // A new device identifier leaves the token valid and rehomes it.
    let renewed = try await events(of: "identityctl renew device --yes", on: system)
    #expect(renewed == ["token rehomed"])
    #expect(try await life(on: system).token == first.token)

    // A reboot causes no event of the app.
    try await system.reboot()
    try await eventually("the greeter runs again") {
      try await system.attempt("systemctl is-active greeter.service").status == 0
    }
    #expect(try await life(on: system).version == "unchanged 1.0")
    #expect(try await life(on: system).installation == first.installation)

    try await remove(from: system)
    try await reinstall(on: system, after: first)
    try await purge(from: system)
  }

  @Test(arguments: Container.oldest)
  func `the service of an app does not start as another app while its manifest is missing`(suite: String) async throws {
    let system = try await Container.ready(suite)
    try await bring("1.0", to: system)
    try await system.shell("dpkg --install \(package("1.0"))")
    let manifest = "/usr/lib/identityd/apps.d/\(Self.app).app"
    try await system.shell("mv \(manifest) /root/manifest")
    try await eventually("the app is suspended") {
      try await system.shell("identityctl --json app list").contains("suspended")
    }
    let start = try await system.attempt("systemctl restart greeter.service")
    #expect(start.status != 0)
    #expect(try await !system.shell("identityctl app list").contains("unit:greeter"))
    try await system.shell("mv /root/manifest \(manifest)")
    // systemd retries the start by itself.
    try await eventually("the greeter runs") {
      try await system.attempt("systemctl is-active greeter.service").status == 0
    }
    let life = try await life(on: system)
    #expect(life.version == "unchanged 1.0" && life.greeting == "Hello from \(life.installation)")
    try await system.shell("dpkg --purge greeter")
  }

  private func isInstalled(on system: Container) async throws -> Bool {
    try await system.shell("identityctl app list").split(separator: "\n").contains { $0 == Self.app }
  }

  /// Removes the package: data bound to the installation must go, and all other data must stay.
  private func remove(from system: Container) async throws {
    let gone = "until ! identityctl app list | grep -qx \(Self.app); do sleep 0.02; done"
    let events = try await events(of: "dpkg --remove greeter; \(gone)", on: system)
    #expect(
      Set(events) == [
        "app suspended", "installation ended uninstalled", "item deleted session", "token deleted", "app uninstalled",
      ],
      "\(events)")
    let items = try await system.shell("identityctl item find group=\(Self.app)")
    #expect(items.split(separator: "\n").count == 1 && items.contains("account=server"))
    for question in ["get installation", "version state", "version history", "token get example"] {
      #expect(try await system.attempt("identityctl \(question) app=\(Self.app)").status != 0, "\(question)")
    }
  }

  /// Installs the package again: the new installation must find the items that outlived the old one.
  private func reinstall(on system: Container, after first: Life) async throws {
    let events = try await events(of: "dpkg --install \(package("1.1"))", on: system)
    #expect(
      events == [
        "app installed", "installation created first-use", "version installed 1.1", "item added session",
        "token created",
      ])
    let second = try await life(on: system)
    #expect(second.installation != first.installation)
    #expect(second.greeting == "Hello from \(second.installation)")
    #expect(second.version == "installed 1.1")
    #expect(second.token == "1.1-\(second.installation)")
    #expect(second.items.count == 2)
    let server = try #require(first.items.first { $0.contains("account=server") })
    let session = try #require(first.items.first { $0.contains("account=session") })
    #expect(second.items.contains(server) && !second.items.contains(session))
    #expect(try await system.shell("identityctl version history app=\(Self.app)").hasPrefix("1.1"))
  }

  private func purge(from system: Container) async throws {
    try await system.shell("dpkg --purge greeter")
    try await eventually("the app is uninstalled") { try await !isInstalled(on: system) }
    #expect(try await system.attempt("identityctl item find group=\(Self.app)").status != 0)
    try await system.shell("[ ! -e /usr/lib/identityd/apps.d/\(Self.app).app ] && [ -d /usr/lib/identityd/apps.d ]")
  }
}
