import Foundation
import Testing

/// Versions of real services, and of the system itself.
extension SystemTests {
  /// Runs a script as `player.service` and returns its output, one element per line.
  private func play(_ script: String, on system: Container) async throws -> [String] {
    try await system.shell("systemd-run --quiet --wait --pipe --collect --unit=player sh -euc '\(script)'")
      .split(separator: "\n").map(String.init)
  }

  @Test(arguments: Container.suites)
  func `all processes of one invocation share a session, and the next invocation has another`(suite: String)
    async throws
  {
    let system = try await Container.ready(suite)
    try await system.write("[App]\nUnit=player.service", to: "\(Container.manifests)/org.example.player.app")
    try await system.shell("systemctl restart identityd.service")
    let installed = try await play(
      "identityctl version report 1.0; (identityctl version report 1.0); identityctl version state", on: system)
    #expect(installed == ["installed 1.0", "installed 1.0", "installed 1.0"])
    let unchanged = try await play("identityctl version report 1.0; identityctl version report 1.0", on: system)
    #expect(unchanged == ["unchanged 1.0", "unchanged 1.0"])
    // The daemon may restart within a session, and another app may ask.
    let upgraded = try await play(
      """
      identityctl version report 1.10
      systemctl restart identityd.service
      identityctl version report 1.10
      systemctl kill --signal=KILL --kill-who=main identityd.service
      identityctl version report 1.10
      systemd-run --quiet --wait --pipe --collect --unit=other identityctl version state app=org.example.player
      """, on: system)
    #expect(upgraded == Array(repeating: "upgraded 1.10", count: 4))
    #expect(try await play("identityctl version report 1.9", on: system) == ["downgraded 1.9"])
    try await system.reboot()
    #expect(
      try await play("identityctl version state; identityctl version report 1.9", on: system) == [
        "downgraded 1.9", "unchanged 1.9",
      ])
    let history = try await play("identityctl version history", on: system)
    #expect(history == ["1.0", "1.10", "1.9"])
    // The order of the manifest.
    try await system.write(
      "[App]\nUnit=player.service\nVersionOrder=linux", to: "\(Container.manifests)/org.example.player.app")
    try await system.shell("systemctl restart identityd.service")
    #expect(try await play("identityctl version report 1.9~rc1", on: system) == ["downgraded 1.9~rc1"])
    #expect(try await play("identityctl version report 1.9", on: system) == ["upgraded 1.9"])
  }

  /// Returns the text between two marks of a manual page, as it is displayed.
  private func example(_ name: String) throws -> String {
    let page = try String(contentsOf: checkout.appending(path: "packaging/man/identityctl.1"), encoding: .utf8)
    let start = try #require(page.range(of: ".\\\" BEGIN \(name)\n"))
    let end = try #require(page.range(of: ".\\\" END \(name)\n"))
    let lines = page[start.upperBound..<end.lowerBound].split(separator: "\n").filter { !$0.hasPrefix(".") }
    return lines.joined(separator: "\n").replacing("\\-", with: "-")
  }

  @Test(arguments: Container.oldest)
  func `the manual's service updates its data once per version, and retries after a failure`(
    suite: String
  ) async throws {
    let system = try await Container.ready(suite)
    let folder = "/usr/lib/player"
    try await system.write(try example("UNIT"), to: "/etc/systemd/system/player.service")
    try await system.write(try example("SCRIPT"), to: "\(folder)/bring-up-to-date")
    try await system.write("#!/bin/sh\nexec sleep infinity", to: "\(folder)/player")
    try await system.write(
      "#!/bin/sh\necho migrated >>\(folder)/log\ntest ! -e \(folder)/broken", to: "\(folder)/migrate")
    try await system.shell("chmod 755 \(folder)/*; rm -f \(folder)/log; systemctl daemon-reload")
    func start() async throws -> (isActive: Bool, migrations: Int) {
      let outcome = try await system.attempt(
        "systemctl reset-failed player.service || true; systemctl restart player.service")
      let log = try await system.shell("cat \(folder)/log 2>/dev/null || true")
      return (outcome.status == 0, log.split(separator: "\n").count)
    }
    try await system.shell("touch \(folder)/broken")
    #expect(try await start() == (false, 1))
    #expect(try await start() == (false, 2))
    try await system.shell("rm \(folder)/broken")
    #expect(try await start() == (true, 3))
    #expect(try await start() == (true, 3))
    // A daemon that does not answer must not count as the answer no.
    try await system.shell("systemctl mask --runtime --now identityd.socket identityd.service")
    let without = try await start()
    try await system.shell("systemctl unmask --runtime identityd.socket identityd.service")
    #expect(without == (false, 3))
    try await system.shell(
      """
      systemctl start identityd.socket
      sed -i 's/1[.]4[.]2/1.4.3/' /etc/systemd/system/player.service
      systemctl daemon-reload
      """)
    #expect(try await start() == (true, 4))
    #expect(try await start() == (true, 4))
    // As a maintainer script, which is not the app.
    let script = try example("MAINTAINER").replacing("org.example.player", with: "unit:player.service")
    func install(_ version: String) async throws -> (status: Int32, migrations: Int) {
      let outcome = try await system.attempt("set -e; version=\(version)\n\(script)")
      let log = try await system.shell("cat \(folder)/log")
      return (outcome.status, log.split(separator: "\n").count)
    }
    #expect(try await install("1.4.3") == (0, 4))
    #expect(try await install("1.5") == (0, 5))
    try await system.shell("systemctl mask --runtime --now identityd.socket identityd.service")
    let unanswered = try await install("1.5")
    try await system.shell(
      "systemctl unmask --runtime identityd.socket identityd.service; systemctl start identityd.socket")
    #expect(unanswered == (3, 5))
    try await system.shell(
      "systemctl stop player.service; rm -rf /etc/systemd/system/player.service \(folder); systemctl daemon-reload")
  }

  @Test(arguments: Container.oldest)
  func `the system version is reported at each boot, and another distribution is an upgrade`(suite: String)
    async throws
  {
    let system = try await Container.ready(suite)
    let shipped = try await system.shell("cat /usr/lib/os-release")
    func state() async throws -> [String] {
      let json = try await system.shell("identityctl --json version state of=os")
      let answer = try JSONDecoder().decode([String: String].self, from: Data(json.utf8))
      let attributes = ["build", "id", "previous", "previous-build", "previous-id"].compactMap { name in
        answer[name].map { "\(name)=\($0)" }
      }
      return ["state", "version"].compactMap { answer[$0] } + attributes
    }
    /// Boots the system with another os-release, and returns the state of its version and the event about it.
    func boot(_ release: String) async throws -> (state: [String], told: String) {
      let last = try await system.shell("identityctl status | sed -n 's/^last-event=//p'")
      try await system.shell("rm /etc/os-release")
      try await system.write(release, to: "/etc/os-release")
      let before = try await state()
      try await system.shell("systemctl restart identityd.service")
      // The boot is still the same.
      #expect(try await state() == before)
      try await system.reboot()
      let told = try await system.attempt("identityctl wait version --since=\(last) --timeout=0.5")
      return (try await state(), told.output.split(separator: "  ").dropFirst(2).joined(separator: " "))
    }
    let first = try await boot("ID=\"testos\"\nVERSION_ID='2.0'\nBUILD_ID=7")
    #expect(first.state[0...1] == ["upgraded", "2.0"])
    #expect(first.state.contains("previous-id=debian"))
    #expect(first.told.hasPrefix("version upgraded of=os version=2.0 build=7 id=testos previous="))
    let same = try await boot("# all the same\nID=testos\nVERSION_ID=2.0\nBUILD_ID=7")
    #expect(same.state == ["unchanged", "2.0", "build=7", "id=testos"])
    #expect(same.told == "")
    let build = try await boot("ID=testos\nVERSION_ID=2.0\nBUILD_ID=6\nIMAGE_VERSION=8")
    #expect(build.state == ["updated", "2.0", "build=8", "id=testos", "previous=2.0", "previous-build=7"])
    let older = try await boot("ID=testos\nVERSION_ID=2.0~beta")
    #expect(older.state == ["downgraded", "2.0~beta", "id=testos", "previous=2.0", "previous-build=8"])
    try await system.shell("ln --symbolic --force ../usr/lib/os-release /etc/os-release")
    try await system.reboot()
    let last = try await state()
    #expect(last.first == "upgraded" && last.contains("previous-id=testos"), "\(last) of \(shipped)")
    // Every user may read the version, and no user may report it.
    let history = try await system.shell("systemd-run --quiet --scope --uid=nobody identityctl version history of=os")
    #expect(history.split(separator: "\n").count == 4)
  }

  /// Systems without a VERSION_ID, image systems, and files that cannot be read for certain.
  private static let systems: [(release: String, state: [String])] = [
    // Debian testing and unstable, of today and without a code name.
    ("ID=debian\nPRETTY_NAME=\"Debian GNU/Linux forky/sid\"\nVERSION_CODENAME=forky", ["forky", "id=debian"]),
    ("ID=debian\nPRETTY_NAME=\"Debian GNU/Linux bookworm/sid\"", ["bookworm/sid", "id=debian"]),
    ("NAME=\"Void\"\nID=\"void\"\nPRETTY_NAME=\"Void Linux\"", ["rolling", "id=void"]),
    ("NAME=\"Arch Linux\"\nID=arch\nBUILD_ID=rolling", ["rolling", "id=arch"]),
    (
      "ID=fedora\nVERSION_ID=41\nVARIANT_ID=silverblue\nOSTREE_VERSION='41.20241114.0'",
      ["41", "build=41.20241114.0", "id=fedora"]
    ),
    (
      "ID=image\nIMAGE_VERSION=33\nOSTREE_VERSION=7\nBUILD_ID=2021-03-19\nVERSION_ID=1",
      ["1", "build=33", "id=image"]
    ),
    ("ID=image\nIMAGE_VERSION=33\nBUILD_ID=2021-03-19", ["33", "id=image"]),
  ]

  private static let faultyReleases: [(release: String, reason: String)] = [
    ("ID=a\nVERSION_ID=\"12", "the value of VERSION_ID in os-release has no closing quotation mark"),
    ("\u{feff}ID=a\nVERSION_ID=12", "os-release begins with a byte order mark"),
    (
      "ID=a\nVERSION_ID=1\(String(repeating: "2", count: 255))",
      "the value of VERSION_ID in os-release is longer than 255 bytes"
    ),
    ("NAME=Nothing", "os-release names neither a system nor a version"),
  ]

  @Test(arguments: Container.oldest)
  func `rolling and image systems have a version, and a faulty os-release is named`(suite: String) async throws {
    let system = try await Container.ready(suite)
    /// Starts a daemon with a new store on a system with this os-release.
    func start(_ release: String) async throws {
      try await system.shell("systemctl stop identityd.socket identityd.service; rm -rf /var/lib/identityd/*")
      try await system.shell("rm /etc/os-release")
      try await system.write(release, to: "/etc/os-release")
      try await system.shell(
        "systemctl reset-failed identityd.socket || true; systemctl start identityd.socket identityd.service")
    }
    let shipped = try await system.shell("cat /etc/debian_version")
    for (release, expected) in Self.systems {
      try await system.write(expected[0] + "\n", to: "/etc/debian_version")
      try await start(release)
      let json = try await system.shell("identityctl --json version state of=os")
      let answer = try JSONDecoder().decode([String: String].self, from: Data(json.utf8))
      let particulars = ["build", "id"].compactMap { name in answer[name].map { "\(name)=\($0)" } }
      #expect([answer["version"] ?? ""] + particulars == expected, "\(release)")
    }
    for (release, reason) in Self.faultyReleases {
      try await start(release)
      #expect(try await system.attempt("identityctl version state of=os").status == 16)
      let invocation = "$(systemctl show --property=InvocationID --value identityd.service)"
      let journal = try await system.shell("journalctl --output=cat _SYSTEMD_INVOCATION_ID=\(invocation)")
      #expect(journal.contains("The version of the system is unknown: \(reason)."), "\(journal)")
    }
    try await system.write(shipped, to: "/etc/debian_version")
    try await system.shell("ln --symbolic --force ../usr/lib/os-release /etc/os-release; systemctl restart identityd")
  }
}
