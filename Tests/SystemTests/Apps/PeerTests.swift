import Testing

/// The app that the daemon derives for a client, from within its sandbox.
extension SystemTests {
  @Test(arguments: Container.suites)
  func `a system service is identified by its unit`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let peer = try await system.whoami("--unit=player --property=DynamicUser=yes")
    #expect(peer.app == "unit:player.service")
    #expect(peer.unit == "player.service")
    #expect(!peer.admin)
    #expect(peer.uid != 0)
    #expect(peer.uid != 65534)
  }

  @Test(arguments: Container.suites)
  func `a service with private namespaces is identified too`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let hidden = "--property=PrivateUsers=yes --property=PrivateNetwork=yes --property=ProtectProc=invisible"
    let peer = try await system.whoami("--unit=hidden --property=DynamicUser=yes \(hidden)")
    #expect(peer.app == "unit:hidden.service")
    #expect(!peer.admin)
  }

  @Test(arguments: Container.suites)
  func `root is an administrator`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let peer = try await system.whoami("--unit=tool")
    #expect(peer.app == "unit:tool.service")
    #expect(peer.uid == 0)
    #expect(peer.admin)
  }

  @Test(arguments: Container.suites)
  func `a client outside of services is identified by its user`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let json = try await system.shell("systemd-run --quiet --scope --uid=nobody identityctl --json whoami")
    let peer = try system.peer(json)
    #expect(peer.app == "user:65534")
    #expect(peer.unit == nil)
    #expect(!peer.admin)
  }

  @Test(arguments: Container.suites)
  func `a user's service is never taken for a system service`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let json = try await system.shell(
      """
      getent passwd listener >/dev/null || useradd --create-home listener
      user=$(id --user listener)
      loginctl enable-linger listener
      systemctl start "user@$user.service"
      systemd-run --quiet --wait --pipe --collect --uid=listener --setenv=XDG_RUNTIME_DIR="/run/user/$user" \
        systemd-run --user --quiet --wait --pipe --collect --unit=player identityctl --json whoami
      """)
    let user = try await system.shell("id --user listener")
    let peer = try system.peer(json)
    #expect(peer.app == "unit:player.service@\(user)")
    #expect(String(peer.uid) == user)
    #expect(!peer.admin)
  }

  @Test(arguments: Container.suites)
  func `each run of a service is identified by its unit and has its own session`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let told = try await system.shell(
      """
      for round in 1 2 3 4; do
        for unit in first second "round-$round"; do
          systemd-run --quiet --wait --pipe --collect --unit="$unit" sh -euc \
            'echo $(identityctl whoami | cut -d " " -f 1) $(identityctl get session) $(identityctl get session)'
        done
        systemd-run --quiet --scope sh -euc 'echo $(identityctl whoami | cut -d " " -f 1) - -'
      done
      """)
    let lines = told.split(separator: "\n").map { $0.split(separator: " ") }
    let expected = (1...4).flatMap { ["first", "second", "round-\($0)"].map { "unit:\($0).service" } + ["user:0"] }
    #expect(lines.map { String($0.first ?? "") } == expected, "\(told)")
    #expect(lines.allSatisfy { $0.count == 3 && $0[1] == $0[2] }, "\(told)")
    #expect(Set(lines.map { $0[1] }).count == 13, "\(told)")
  }

  @Test(arguments: Container.suites)
  func `a process that systemd moves to another unit is identified by that unit`(suite: String) async throws {
    let system = try await Container.ready(suite)
    try await system.write(
      """
      read -r process rest </proc/self/stat
      identityctl whoami | cut -d ' ' -f 1
      busctl --quiet call org.freedesktop.systemd1 /org/freedesktop/systemd1 org.freedesktop.systemd1.Manager \
        StartTransientUnit 'ssa(sv)a(sa(sv))' moved.scope fail 1 PIDs au 1 $process 0
      while ! grep -q moved.scope /proc/self/cgroup; do sleep 0.05; done
      identityctl whoami | cut -d ' ' -f 1
      """, to: "/run/mover")
    let told = try await system.shell(
      """
      systemd-run --quiet --wait --pipe --collect --unit=mover sh -eu /run/mover
      systemd-run --quiet --wait --pipe --collect --unit=mover identityctl whoami | cut -d ' ' -f 1
      rm /run/mover
      """)
    #expect(told.split(separator: "\n") == ["unit:mover.service", "user:0", "unit:mover.service"])
  }

  @Test(arguments: Container.suites)
  func `two services have two installation identifiers and one device identifier`(suite: String) async throws {
    let system = try await Container.ready(suite)
    func identifiers(_ unit: String) async throws -> [Substring] {
      let client = "sh -euc 'identityctl get device; identityctl get installation'"
      return try await system.shell("systemd-run --quiet --wait --pipe --collect --unit=\(unit) \(client)")
        .split(separator: "\n")
    }
    let first = try await identifiers("first")
    let second = try await identifiers("second")
    #expect(first.count == 2)
    #expect(first.first == second.first)
    #expect(first.last != second.last)
  }
}
