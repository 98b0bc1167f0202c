import Systemd
import Testing

/// The places of cgroups, by the names that service managers, container runtimes and attackers give them.
struct GroupPlaceTests {
  private static let id = String(repeating: "0123456789abcdef", count: 4)
  private static let other = String(repeating: "fedcba9876543210", count: 4)

  private func place(_ path: String) -> GroupPlace {
    GroupPlace(of: path.replacing("ID", with: Self.id).replacing("OTHER", with: Self.other))
  }

  private func container(_ path: String) -> String? {
    if case .container(let container) = place(path) { container.name } else { nil }
  }

  @Test(
    arguments: [
      ("/system.slice/docker-ID.scope", "ID"), ("/docker/ID", "ID"),
      ("/system.slice/docker-ID.scope/app.slice/x", "ID"),
      ("/machine.slice/libpod-ID.scope/container", "ID"), ("/libpod_parent/libpod-ID", "ID"),
      ("/kubepods.slice/kubepods-besteffort.slice/kubepods-pod1.slice/cri-containerd-ID.scope", "ID"),
      ("/kubepods/burstable/pod12345678-1234/ID", "ID"), ("/kubepods.slice/crio-ID.scope", "ID"), ("/default/ID", "ID"),
      ("/system.slice/nerdctl-ID.scope", "ID"), ("/user.slice/user-0.slice/ID", "ID"),
      // A system that runs in a container. Its services belong to the container.
      ("/system.slice/docker-ID.scope/system.slice/nginx.service", "ID"),
      ("/machine.slice/machine-deb.scope/payload/system.slice/nginx.service", "deb"),
      ("/machine.slice/machine-my\\x2ddeb.scope", "my-deb"), ("/machine.slice/other.scope", "other"),
      ("/machine.slice/folder", "folder"), ("/machine.slice/machine-a.slice/b.scope", "b"), ("/lxc/web", "web"),
      ("/lxc.payload.web/init.scope", "web"), ("/lxc.payload/web/user.slice", "web"),
      // A container that is named like a unit.
      ("/lxc.payload.web.service", "web.service"), ("/lxc/a.slice/system.slice/b.service", "a.slice"),
      // A user's own container, whose name the user chooses.
      ("/user.slice/user-7.slice/user@7.service/user.slice/libpod-ID.scope/container", "ID@7"),
      ("/user.slice/user-7.slice/user@7.service/app.slice/docker-ID.scope", "ID@7"),
      ("/user.slice/user-7.slice/user@7.service/machine.slice/machine-x.scope", "x@7"),
      ("/user.slice/user-7.slice/user@7.service/app.slice/run-1.scope/lxc.payload.web/init.scope", "web@7"),
      // Names that would pass for a user's container.
      ("/lxc/web@7", "web\\x407"), ("/lxc/a:b", "a\\x3ab"), ("/machine.slice/machine-a\\x40b.scope", "a\\x40b"),
      ("/machine.slice/machine-a\\x+4b.scope", "a\\x5cx\\x2b4b"),
      // An ID of another form keeps the prefix, so it cannot pass for the name of a machine.
      ("/system.slice/docker-4qzsv0k4o0eyj4e2gchs2lb0k.scope", "docker-4qzsv0k4o0eyj4e2gchs2lb0k"),
      ("/system.slice/docker-.scope", "docker-"), ("/machine.slice/libpod-web.scope", "libpod-web"),
      ("/system.slice/crio-web.scope", "crio-web"),
      ("/system.slice/cri-containerd-1\\x2f2.scope", "cri-containerd-1\\x2f2"),
      ("/system.slice/nerdctl-ID0.scope", "nerdctl-ID0"), ("/system.slice/buildkit-a.scope", "buildkit-a"),
      ("/system.slice/runc-a.scope", "runc-a"), ("/user.slice/buildah-a.scope", "buildah-a"), ("/crun-a", "crun-a"),
      ("/libpod_parent/libpod-conmon-web", "libpod-conmon-web"), ("/docker/web", "docker-web"),
      ("/docker/buildkit/4qzsv0k4o", "buildkit-4qzsv0k4o"), ("/buildkit/a/b", "buildkit-a"),
      ("/kubepods/pod1/crio-web", "crio-web"),
      ("/kubepods.slice/kubepods-pod1.slice/web.scope", "kubepods-pod1.slice-web"), ("/kubepods/pod1/web", "pod1-web"),
    ])
  func `a container is named by its ID or its name`(path: String, name: String) {
    #expect(container(path) == name.replacing("ID", with: Self.id))
  }

  @Test(arguments: [
    "/", "/init.scope", "/system.slice/nginx.service", "/user.slice/user-7.slice/session-2.scope", "/openrc.sshd/x",
    // A container in a service belongs to the service.
    "/system.slice/web.service/libpod-payload-ID", "/system.slice/web.service/docker-ID.scope",
    "/machine.slice/systemd-nspawn@deb.service/payload/system.slice/nginx.service",
    "/user.slice/user-7.slice/user@7.service/app.slice/web.service/libpod-payload-ID",
    // Applications of a user belong to the user.
    "/user.slice/user-7.slice/user@7.service/app.slice/app-flatpak-org.example.App-123.scope",
    "/user.slice/user-7.slice/user@7.service/app.slice/run-1.scope/payload",
    // Processes of the host beside containers.
    "/machine.slice/libpod-conmon-ID.scope", "/libpod_parent/conmon", "/lxc.monitor.web",
    "/system.slice/docker.service",
    "/system.slice/docker-registry.service", "/system.slice/docker.socket", "/system.slice/docker-data.mount",
    "/machine.slice", "/machine.slice/machine-a.slice", "/docker", "/docker/buildkit", "/kubepods/burstable/pod1",
  ])
  func `other cgroups are no containers`(path: String) { #expect(place(path) == .outside) }

  /// Names that the owner of a delegated cgroup can create in it. All of them are those of containers somewhere else.
  static let names = [
    "machine-victim.scope", "docker-OTHER.scope", "docker-victim.scope", "libpod-OTHER.scope", "crio-OTHER.scope",
    "cri-containerd-OTHER.scope", "nerdctl-OTHER.scope", "buildkit-victim.scope", "lxc.payload.victim", "lxc/victim",
    "lxc.payload/victim", "machine.slice/victim.scope", "machine.slice/machine-victim.scope", "machine.slice/victim",
    "OTHER", "docker/OTHER", "kubepods/burstable/pod1/OTHER", "libpod_parent/libpod-OTHER",
    "system.slice/docker-OTHER.scope", "user.slice/user-8.slice/user@8.service/app.slice/docker-OTHER.scope",
  ]
  /// Names that are those of no container anywhere.
  static let plainNames = [
    "payload", "supervisor", "init.scope", "victim.service", "system.slice/victim.service", "session-1.scope",
    "systemd-nspawn@victim.service/payload", "user.slice/user-8.slice/user@8.service/app.slice/victim.service",
  ]

  @Test(arguments: [
    ("/system.slice/run-1.scope", "run-1.scope"), ("/user.slice/user-7.slice/session-1.scope", "session-1.scope"),
    ("/init.scope", "init.scope"), ("/a.slice/a-b.slice/c.scope", "c.scope"),
    ("/system.slice/data.mount", "data.mount"),
    ("/system.slice/a.socket", "a.socket"), ("/machine.slice/libpod-conmon-ID.scope", "libpod-conmon-ID.scope"),
  ])
  func `no name below a scope of the system is believed`(scope: String, unit: String) {
    for name in Self.names + Self.plainNames {
      #expect(place("\(scope)/\(name)") == .below(unit: unit.replacing("ID", with: Self.id)), "\(name)")
    }
    #expect(place(scope) == .outside)
  }

  @Test(arguments: [
    "/system.slice/web.service", "/machine.slice/systemd-nspawn@deb.service", "/system.slice/docker-web.service",
    "/user.slice/user-7.slice/user@7.service/app.slice/web.service", "/system.slice/user@+7.service",
    "/user.slice/user-7.slice/user@7.service/user@8.service",
  ])
  func `a name below a service makes no container`(service: String) {
    for name in Self.names + Self.plainNames { #expect(place("\(service)/\(name)") == .outside, "\(name)") }
  }

  @Test(arguments: [
    ("/system.slice/docker-ID.scope", "ID"), ("/docker/ID", "ID"), ("/machine.slice/machine-outer.scope", "outer"),
    ("/lxc/outer", "outer"), ("/lxc.payload.outer/ns", "outer"), ("/kubepods/pod1/ID", "ID"),
    ("/system.slice/docker-outer.scope/init", "docker-outer"),
    ("/user.slice/user-7.slice/user@7.service/user.slice/libpod-ID.scope/container", "ID@7"),
  ])
  func `a name below a container belongs to that container`(outer: String, name: String) {
    for inner in Self.names + Self.plainNames {
      #expect(container("\(outer)/\(inner)") == name.replacing("ID", with: Self.id), "\(inner)")
    }
  }

  @Test(arguments: [
    "/user.slice/user-7.slice/user@7.service", "/user.slice/user-7.slice/user@7.service/app.slice",
    "/user.slice/user-7.slice/user@7.service/app.slice/run-1.scope",
  ])
  func `below a user's manager every container is the user's`(place: String) {
    for name in Self.names where !name.contains("user@") {
      #expect(container("\(place)/\(name)")?.hasSuffix("@7") == true, "\(name)")
    }
    // Of a manager below a manager, neither the user nor a container counts.
    for name in Self.plainNames + Self.names where name.contains("user@") || !Self.names.contains(name) {
      #expect(self.place("\(place)/\(name)") == .outside, "\(name)")
    }
  }

  @Test(arguments: [
    ("/docker/ID", "/docker/ID/system.slice/a.scope", GroupPlace.outside),
    ("/docker/ID/system.slice/identityd.service", "/docker/ID/docker/OTHER", nil),
    ("/docker/ID", "/docker/ID/a.scope/docker-OTHER.scope", .below(unit: "a.scope")),
    ("/system.slice/a.scope/payload/x", "/system.slice/a.scope/payload/system.slice/b.service", .outside),
    ("/system.slice/a.scope/payload/x", "/system.slice/a.scope/supervisor", .below(unit: "a.scope")),
    ("/system.slice/identityd.service", "/docker/OTHER", nil), ("/", "/docker/OTHER", nil),
  ])
  func `places count from the container of the daemon`(own: String, peer: String, expected: GroupPlace?) {
    let root = GroupPlace.root(of: own.replacing("ID", with: Self.id))
    let found = GroupPlace(
      of: peer.replacing("ID", with: Self.id).replacing("OTHER", with: Self.other), below: root)
    if let expected {
      #expect(found == expected)
    } else if case .container(let container) = found {
      #expect(container.name == Self.other)
    } else {
      Issue.record("\(found)")
    }
  }
}

/// The numbers in the names of units.
struct UnitNameTests {
  @Test(
    arguments: [("0", 0), ("7", 7), ("1000", 1_000), ("65534", 65_534), ("4294967294", 4_294_967_294)]
      as [(String, UInt32)])
  func `a user's manager and slice have the user's ID`(digits: String, user: UInt32) {
    #expect(UnitName("user@\(digits).service")?.managedUser == user)
    #expect(UnitName("user-\(digits).slice")?.slicedUser == user)
  }

  @Test(arguments: [
    "", "+2001", "-0", "-1", "02001", "00", " 7", "7 ", "0x7", "7.5", "٧", "２００１", "4294967295", "4294967296", "65535",
    "99999999999999999999", "a", "7\\x2d", "7-8",
  ])
  func `a number of another form is no user`(text: String) {
    #expect(UnitName("user@\(text).service")?.managedUser == nil)
    #expect(UnitName("user-\(text).slice")?.slicedUser == nil)
    // So nobody owns what is below.
    let id = String(repeating: "a", count: 64)
    #expect(GroupPlace(of: "/user.slice/user@\(text).service/docker-\(id).scope") == .outside)
  }

  @Test(arguments: [
    "user@.service", "user@7", "user@7.scope", "xuser@7.service", "user@7.service.service", "user.service",
  ])
  func `another unit is no user's manager`(name: String) {
    #expect(UnitName(Substring(name))?.managedUser == nil)
  }
}
