import Foundation
import TestSupport
import Testing

/// The examples in `identityd-containers(7)`, run with an image made from the system.
extension SystemTests {
  /// Returns the text of an example file of the page.
  private func example(_ name: String) throws -> String {
    let page = try String(
      contentsOf: checkout.appending(path: "packaging/man/identityd-containers.7"), encoding: .utf8)
    let begin = try #require(page.range(of: ".\\\" BEGIN FILE \(name)\n.Bd -literal -offset indent\n"), "\(name)")
    let end = try #require(page.range(of: "\n.Ed\n", range: begin.upperBound..<page.endIndex))
    return String(page[begin.upperBound..<end.lowerBound]).replacing("\\-", with: "-")
      .replacing("registry.example/web", with: "local/probe")
  }

  /// A shell command that prints `whoami`, and then `writable` if the folder of the socket is writable.
  private static let probe = "identityctl --json whoami; ! true 2>/dev/null >/run/identityd/file || echo writable"

  @Test(arguments: runtimeSuites)
  func `the quadlet of the manual is the app of its manifest, whatever its user`(suite: String) async throws {
    let system = try await Container.ready(suite)
    try await prepareImage(system)
    try await system.write(try example("org.example.web.app"), to: "\(Container.manifests)/org.example.web.app")
    for user in ["0", "33", "1000"] {
      let added = "Image=localhost/local/probe\nUser=\(user)\nExec=/bin/sh -c '\(Self.probe)'"
      let quadlet = try example("web.container").replacing("Image=local/probe", with: added)
      try await system.write(quadlet + "\n[Service]\nType=oneshot", to: "/etc/containers/systemd/web.container")
      let text = try await system.shell(
        """
        systemctl daemon-reload
        systemctl start web.service
        journalctl --sync
        # The log driver of podman writes the line a second time.
        journalctl --quiet --output=cat _SYSTEMD_INVOCATION_ID=$(systemctl show --property=InvocationID --value web) |
          grep -e '^{' -e writable | uniq
        """)
      let peer = try system.peer(text)
      #expect(peer.app == "org.example.web", "\(text)")
      #expect(String(peer.uid) == user && !peer.admin, "\(text)")
    }
    try await system.shell("rm --recursive /etc/containers/systemd; systemctl daemon-reload")
  }

  @Test(arguments: runtimeSuites)
  func `the commands and the compose file of the manual start containers that are apps`(suite: String) async throws {
    let system = try await Container.ready(suite)
    try await prepareImage(system)
    let commands = try example("run").split(separator: "\n").map { line in
      line.replacing(" --rm ", with: " --rm --network=none ")
        .replacing("identityctl whoami", with: "/bin/sh -c '\(Self.probe)'")
    }
    #expect(commands.count == 2)
    try await system.write(try example("compose.yaml"), to: "/root/web/compose.yaml")
    try await system.write("services: { web: { network_mode: none } }", to: "/root/web/compose.override.yaml")
    for command in commands + ["cd /root/web && docker-compose run --rm -T web /bin/sh -c '\(Self.probe)'"] {
      let text = try await system.shell("\(command) 2>/root/errors || cat /root/errors")
      let peer = try system.peer(text)
      #expect(peer.app.wholeMatch(of: /container:[0-9a-f]{64}/) != nil, "\(command): \(text)")
      #expect(!peer.admin)
    }
  }

  @Test(arguments: runtimeSuites)
  func `the system of systemd-nspawn in the manual is the app of its manifest`(suite: String) async throws {
    let system = try await Container.ready(suite)
    try await prepareImage(system)
    try await system.write(try example("org.example.box.app"), to: "\(Container.manifests)/org.example.box.app")
    // The tests have no virtual network cards.
    let settings = try example("box.nspawn") + "\n[Network]\nVirtualEthernet=no"
    try await system.write(settings, to: "/etc/systemd/nspawn/box.nspawn")
    let root = "/var/lib/machines/box"
    let folder = "\(root)/usr/lib"
    try await system.shell("mkdir -p \(root); tar --extract --directory=\(root) --file=/image.tar")
    try await system.write("ID=box", to: "\(folder)/os-release")
    try await system.write(
      "#!/bin/sh\nexec >/answer 2>/dev/null\n\(Self.probe)\necho end\nexec sleep infinity",
      to: "\(folder)/systemd/systemd")
    try await system.shell("chmod 755 \(folder)/systemd/systemd; systemctl start systemd-nspawn@box.service")
    try await eventually("the system has asked") {
      try await system.shell("cat \(root)/answer || true").hasSuffix("end")
    }
    // The first process is no init system, so it ignores the request to power off.
    let lines = try await system.shell(
      """
      cat \(root)/answer
      systemctl kill --signal=SIGKILL systemd-nspawn@box.service
      systemctl stop systemd-nspawn@box.service
      rm -r \(root)
      """
    ).split(separator: "\n").map(String.init)
    #expect(lines.count == 2, "the folder is read-only: \(lines)")
    let peer = try system.peer(lines[0])
    #expect(peer.app == "org.example.box", "\(lines)")
    #expect(!peer.admin, "\(lines)")
  }

  @Test(arguments: runtimeSuites)
  func `the container of LXC in the manual is an app, by its name or of its manifest`(suite: String) async throws {
    let system = try await Container.ready(suite)
    try await prepareImage(system)
    let folder = "/var/lib/lxc/box"
    let configuration = """
      lxc.rootfs.path = dir:\(folder)/rootfs
      lxc.uts.name = box
      lxc.net.0.type = empty
      lxc.mount.auto = proc:mixed
      lxc.init.cmd = /probe
      """
    try await system.write("\(configuration)\n\(try example("config"))", to: "\(folder)/config")
    try await system.shell("mkdir \(folder)/rootfs; tar --extract --directory=\(folder)/rootfs --file=/image.tar")
    try await system.write("#!/bin/sh\nexec >/answer 2>/dev/null\n\(Self.probe)", to: "\(folder)/rootfs/probe")
    try await system.shell("chmod 755 \(folder)/rootfs/probe")
    for app in ["container:box", "org.example.box"] {
      if app == "org.example.box" {
        try await system.write("[App]\nContainer=box", to: "\(Container.manifests)/\(app).app")
        try await system.shell("systemctl reload identityd.service")
      }
      let text = try await system.shell("lxc-start --name=box --foreground; cat \(folder)/rootfs/answer")
      let peer = try system.peer(text)
      #expect(peer.app == app, "\(text)")
      #expect(peer.uid == 0 && !peer.admin, "\(text)")
    }
    try await system.shell("rm -r \(folder)")
  }
}
