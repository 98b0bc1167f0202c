import Foundation
import TestSupport
import Testing

/// The lifetime of each identifier on a real system. The table in the tour is the result.
extension SystemTests {
  /// The actions on the app or the machine, by their names in the table.
  private static let happenings = [
    "the same session", "identityd restarted", "identityd killed", "app launched anew", "app upgraded",
    "app reinstalled", "vendor's last app reinstalled", "snapshot resumed", "reboot", "identityd upgraded",
    "identityd purged", "system reset",
  ]

  /// Carries out an action, and leaves the app running.
  private func happen(_ what: String, to probe: Probe) async throws {
    let system = probe.system
    switch what {
    case "the same session": break
    case "identityd restarted": try await system.shell("systemctl restart identityd.service")
    case "identityd killed": try await system.shell("systemctl kill --signal=KILL --kill-who=main identityd.service")
    case "app launched anew": try await probe.launch()
    case "app upgraded":
      try await probe.upgrade()
      try await probe.launch()
    case "app reinstalled":
      try await system.write("[App]\nVendor=org.example", to: "\(Container.manifests)/org.example.other.app")
      try await probe.uninstall()
      try await probe.install()
      try await probe.launch()
    case "vendor's last app reinstalled":
      let other = "org.example.other"
      try await system.shell("rm -f \(Container.manifests)/\(other).app; identityctl --yes app forget \(other)")
      try await probe.uninstall()
      try await probe.install()
      try await probe.launch()
    case "snapshot resumed": try await system.shell("identityctl machine resumed")
    case "reboot":
      try await system.reboot()
      try await probe.launch()
    case "identityd upgraded": try await system.shell(Container.install)
    case "identityd purged":
      try await system.shell("cp -a \(Container.manifests) /root/manifests; \(Container.purge)")
      try await system.shell("\(Container.install); cp -a /root/manifests/. \(Container.manifests)/")
      try await probe.install()
    case "system reset":
      // The host key belongs to the former machine-id.
      try await system.shell(": >/etc/machine-id; rm -f /var/lib/systemd/credential.secret")
      try await system.reboot()
      try await probe.launch()
    default: throw Failure("nobody knows how '\(what)' happens")
    }
  }

  /// Returns the table as Markdown.
  private func table(on system: Container) async throws -> String {
    let probe = try await Probe(on: system)
    var rows = Probe.levels.map { "| \($0) |" }
    for what in Self.happenings {
      let before = try await probe.identifiers()
      try await happen(what, to: probe)
      let after = try await probe.identifiers()
      for (place, level) in Probe.levels.enumerated() {
        rows[place] += before[level] == after[level] ? " same |" : " – |"
      }
    }
    try await probe.remove()
    let head = "| identifier | " + Self.happenings.joined(separator: " | ") + " |"
    let rule = "|---|" + Self.happenings.map { _ in "---|" }.joined()
    return ([head, rule] + rows).joined(separator: "\n") + "\n"
  }

  @Test(arguments: Container.newest)
  func `each identifier lasts as long as the tour says`(suite: String) async throws {
    let table = try await table(on: try await Container.ready(suite))
    let begin = "<!-- BEGIN PERSISTENCE -->\n"
    let end = "<!-- END PERSISTENCE -->\n"
    let file = Document.File.tour.url
    let page = try String(contentsOf: file, encoding: .utf8)
    let start = try #require(page.range(of: begin))
    let finish = try #require(page.range(of: end))
    if ProcessInfo.processInfo.environment["IDENTITYD_UPDATE_README"] != nil {
      let new = page[..<start.upperBound] + table + page[finish.lowerBound...]
      try Data(new.utf8).write(to: file)
    } else {
      #expect(
        page[start.upperBound..<finish.lowerBound] == table, "run the tests once with IDENTITYD_UPDATE_README=1")
    }
  }

  @Test(arguments: Container.suites)
  func `a user's own service has a session for each launch, and never a manifest's app`(suite: String) async throws {
    let system = try await Container.ready(suite)
    try await system.write("[App]\nUnit=player.service", to: "\(Container.manifests)/org.example.player.app")
    let user = try await system.shell(
      """
      getent passwd listener >/dev/null || useradd --create-home listener
      user=$(id --user listener)
      loginctl enable-linger listener
      systemctl start "user@$user.service"
      echo "$user"
      """)
    func launch() async throws -> [String] {
      let client = "sh -euc 'identityctl get session; identityctl get session; identityctl whoami'"
      return try await system.shell(
        """
        systemd-run --quiet --wait --pipe --collect --uid=listener --setenv=XDG_RUNTIME_DIR="/run/user/\(user)" \
          systemd-run --user --quiet --wait --pipe --collect --unit=player \(client)
        """
      ).split(separator: "\n").map(String.init)
    }
    let first = try await launch()
    let second = try await launch()
    #expect(first.count == 3 && first[0] == first[1])
    #expect(second.count == 3 && second[0] == second[1])
    #expect(first[0] != second[0])
    #expect(first[2] == "unit:player.service@\(user)")
  }
}
