import Systemd
import Testing

/// The control groups of containers, by the names that runtimes give them.
struct ContainerScopeTests {
  private static let id = String(repeating: "0123456789abcdef", count: 4)

  @Test(
    arguments: [
      ("/system.slice/docker-ID.scope", "ID"), ("/docker/ID", "ID"),
      ("/system.slice/docker-ID.scope/app.slice/x", "ID"),
      ("/machine.slice/libpod-ID.scope/container", "ID"), ("/libpod_parent/libpod-ID", "ID"),
      ("/kubepods.slice/kubepods-besteffort.slice/kubepods-pod1.slice/cri-containerd-ID.scope", "ID"),
      ("/kubepods/burstable/pod12345678-1234/ID", "ID"), ("/kubepods.slice/crio-ID.scope", "ID"), ("/default/ID", "ID"),
      ("/system.slice/nerdctl-ID.scope", "ID"), ("/user.slice/user-7.slice/session-1.scope/ID", "ID"),
      // A system that runs in a container. Its services belong to the container.
      ("/system.slice/docker-ID.scope/system.slice/nginx.service", "ID"),
      ("/machine.slice/machine-deb.scope/payload/system.slice/nginx.service", "deb"),
      ("/machine.slice/machine-my\\x2ddeb.scope", "my-deb"), ("/machine.slice/other.scope", "other"),
      ("/machine.slice/folder", "folder"), ("/lxc/web", "web"), ("/lxc.payload.web/init.scope", "web"),
      ("/lxc.payload/web/user.slice", "web"),
      // A user's own container, whose name the user chooses.
      ("/user.slice/user-7.slice/user@7.service/user.slice/libpod-ID.scope/container", "ID@7"),
      ("/user.slice/user-7.slice/user@7.service/app.slice/docker-ID.scope", "ID@7"),
      ("/user.slice/user-7.slice/user@7.service/machine.slice/machine-x.scope", "x@7"),
      // Names that would pass for a user's container.
      ("/lxc/web@7", "web\\x407"), ("/lxc/a:b", "a\\x3ab"), ("/machine.slice/machine-a\\x40b.scope", "a\\x40b"),
    ])
  func `a container is named by its ID or its name`(path: String, name: String) {
    let path = path.replacing("ID", with: Self.id)
    #expect(ContainerScope(group: path)?.name == name.replacing("ID", with: Self.id))
  }

  @Test(arguments: [
    "/", "/init.scope", "/system.slice/nginx.service", "/user.slice/user-7.slice/session-2.scope",
    // A container in a service belongs to the service.
    "/system.slice/web.service/libpod-payload-ID", "/system.slice/web.service/docker-ID.scope",
    "/machine.slice/systemd-nspawn@deb.service/payload/system.slice/nginx.service",
    "/user.slice/user-7.slice/user@7.service/app.slice/web.service/libpod-payload-ID",
    // Applications of a user belong to the user.
    "/user.slice/user-7.slice/user@7.service/app.slice/app-flatpak-org.example.App-123.scope",
    // Processes of the host beside containers.
    "/machine.slice/libpod-conmon-ID.scope", "/lxc.monitor.web", "/system.slice/docker.service",
    "/system.slice/docker-short.scope", "/machine.slice", "/machine.slice/machine-a.slice",
  ])
  func `other cgroups are no containers`(path: String) {
    #expect(ContainerScope(group: path.replacing("ID", with: Self.id)) == nil)
  }
}
