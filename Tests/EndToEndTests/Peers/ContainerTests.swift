import Foundation
import TestSupport
import Testing

/// Returns a random container ID in the format of container runtimes.
private func containerID() -> String {
  (UUID().uuidString + UUID().uuidString).filter { $0 != "-" }.lowercased()
}

/// Returns the first two words of an answer.
private func beginning(_ answer: String) -> String { answer.split(separator: " ").prefix(2).joined(separator: " ") }

/// Contained peers: processes in cgroups and namespaces as container runtimes create them. The data of a container is
/// separate from the data of the host and of other containers.
@Suite(.enabled(if: canMakeControlGroups, "control groups can be made by root alone, where libsystemd looks for them"))
struct ContainerTests {
  @Test func `row 36e: a container's user is not the host's user and cannot read that user's data`() throws {
    let daemon = try DaemonUnderTest().start()
    let host = try OtherUser(2_001, of: daemon)
    #expect(try host.ask("item put service=s account=a data=aG9zdA==") == "OK created\n")
    let id = containerID()
    let group = try ControlGroup("docker-\(id).scope")
    let heard = try daemon.ask(
      [
        "whoami", "item read service=s account=a", "item read service=s account=a group=user:2001",
        "app forget user:2001",
      ],
      in: group, as: 2_001)
    #expect(heard[0].hasPrefix("OK container:\(id) uid=2001 gid=2001 pid="))
    #expect(heard[0].contains(" container=\(id) ") && heard[0].hasSuffix(" admin=no"))
    #expect(heard.dropFirst().map(beginning) == ["ERR not-found", "ERR denied", "ERR denied"])
    #expect(try host.ask("item read service=s account=a").contains("data=aG9zdA=="))
    try host.end()
  }

  @Test func `row 36e: root in a container is no admin, and is not the app of the host's root`() throws {
    let daemon = try DaemonUnderTest().start()
    #expect(try daemon.ask("item put service=s account=a data=cm9vdA==") == "OK created")
    let group = try ControlGroup("libpod-\(containerID()).scope/container")
    let heard = try daemon.ask(
      [
        "whoami", "item read service=s account=a", "item find group=*", "renew device", "app list",
        "get boot app=user:0",
        "key rotate",
      ], in: group, as: 0)
    #expect(heard[0].hasPrefix("OK container:") && heard[0].hasSuffix(" admin=no"))
    #expect(
      heard.dropFirst().map(beginning) == [
        "ERR not-found", "ERR not-found", "ERR denied", "OK 0", "ERR denied", "ERR denied",
      ])
  }

  @Test func `containers with the same users share no data, and each keeps its own`() throws {
    let daemon = try DaemonUnderTest().start()
    let groups = try (0..<2).map { _ in try ControlGroup("cri-containerd-\(containerID()).scope") }
    for user in [0, 100_033] {
      let put = "item put service=s account=\(user) data=eA=="
      #expect(try daemon.ask([put], in: groups[0], as: user) == ["OK created"])
      let read = "item read service=s account=\(user)"
      #expect(try daemon.ask([read], in: groups[1], as: user)[0].hasPrefix("ERR not-found"))
      #expect(try daemon.ask([read], in: groups[0], as: user)[0].hasPrefix("OK"))
    }
    let identifiers = try groups.map { beginning(try daemon.ask(["get installation"], in: $0, as: 0)[0]) }
    #expect(identifiers[0].hasPrefix("OK ") && identifiers[0] != identifiers[1])
  }

  @Test func `app forget removes a container's data, called by the container or by an admin`() throws {
    let daemon = try DaemonUnderTest().start()
    let id = containerID()
    let group = try ControlGroup("crio-\(id).scope")
    let first = try daemon.ask(
      ["get installation", "app forget container:\(id)", "get installation"], in: group, as: 5)
    #expect(first[1] == "OK")
    #expect(first[0].hasPrefix("OK ") && beginning(first[0]) != beginning(first[2]))
    let rows = try daemon.client().ask("app forget app=container:* dry-run=yes")
    #expect(rows.first?.hasPrefix("* container:\(id) ") == true && rows.last == "OK 1 left=0")
    #expect(try daemon.ask("app forget container:\(id)") == "OK")
  }

  /// Tests cgroup paths, each with the name of its container.
  @Test(
    arguments: [
      ("machine-web.scope/payload", "web"), ("machine.slice/machine-web\\x2d1.scope", "web-1"),
      ("lxc.payload.box/init.scope", "box"), ("lxc/box", "box"),
      ("kubepods.slice/kubepods-pod1.slice/cri-containerd-\(String(repeating: "ab", count: 32)).scope", "abab"),
      ("docker/\(String(repeating: "cd", count: 32))", "cdcd"),
    ])
  func `container names are derived from the cgroup names that runtimes give`(path: String, name: String) throws {
    let daemon = try DaemonUnderTest().start()
    let group = try ControlGroup(path)
    let heard = try daemon.ask(["whoami"], in: group, Namespaces.own, as: 0)
    #expect(heard[0].hasPrefix("OK container:\(name)") && heard[0].hasSuffix("admin=no"), "\(heard)")
  }

  @Test func `Container= in a manifest admits a container by name, but not a service of that name`() throws {
    let daemon = try DaemonUnderTest()
    let apps = daemon.folder.appending(path: "apps.d")
    try FileManager.default.createDirectory(at: apps, withIntermediateDirectories: true)
    try Data("[App]\nVendor=org.v\nContainer=web\n".utf8).write(to: apps.appending(path: "org.web.app"))
    try daemon.start(configuration: "[Apps]\nDirectories=\(apps.path)\n[Access]\nContainers=deny\n")
    let web = try ControlGroup("machine-web.scope")
    #expect(try daemon.ask(["whoami"], in: web, as: 0)[0].hasPrefix("OK org.web uid=0 "))
    let other = try ControlGroup("machine-other.scope")
    let refused = try daemon.greeting(in: other, as: 0)
    #expect(refused.count == 1 && refused[0].hasPrefix("ERR denied") && refused[0].contains("Container=other"))
    let service = try ControlGroup("web.service")
    #expect(try daemon.ask(["whoami"], in: service, Namespaces.own, as: 0)[0].hasPrefix("OK unit:web.service uid=0 "))
  }

  @Test func `a container within a service belongs to that service and is never an admin`() throws {
    let daemon = try DaemonUnderTest().start()
    let group = try ControlGroup("box.service/libpod-payload-\(containerID())")
    let heard = try daemon.ask(["whoami", "renew device"], in: group, as: 0)
    #expect(heard[0].hasPrefix("OK unit:box.service uid=0 ") && heard[0].hasSuffix(" admin=no"))
    #expect(heard[1].hasPrefix("ERR denied"))
    #expect(try daemon.ask(["whoami"], in: group, Namespaces.own, as: 0)[0].hasSuffix(" admin=yes"))
  }

  @Test(arguments: [Namespaces.process, Namespaces.user])
  func `a user's sandbox belongs to that user, and root in a sandbox is no admin`(namespaces: [String]) throws {
    let daemon = try DaemonUnderTest().start()
    let heard = try daemon.ask(["whoami"], in: nil, namespaces, as: 2_001)
    #expect(heard[0].hasPrefix("OK user:2001 uid=2001 ") && heard[0].hasSuffix("admin=no"))
    // Root without capabilities cannot write a user ID map.
    let unnamed = namespaces.filter { $0 != "--map-root-user" }
    let root = try daemon.ask(["whoami", "account set x"], in: nil, unnamed, as: 0)
    #expect(root[0].hasPrefix("OK user:0 uid=0 ") && root[0].hasSuffix("admin=no"), "\(root)")
    #expect(root[1].hasPrefix("ERR denied"))
  }

  @Test func `a process that enters a user namespace loses its rights with its next connection`() throws {
    let daemon = try DaemonUnderTest().start()
    // Connects twice before, so that the daemon knows the process.
    let script = """
      import ctypes, socket, sys
      def ask():
        daemon = socket.socket(socket.AF_UNIX)
        daemon.connect(sys.argv[1])
        daemon.sendall(b"whoami\\n")
        print(daemon.makefile().readline().split()[-1])
      ask()
      ask()
      if ctypes.CDLL(None, use_errno=True).unshare(0x10000000) != 0: sys.exit(ctypes.get_errno())
      ask()
      """
    let result = try run(["python3", "-c", script, daemon.socket])
    #expect(result.output == "admin=yes\nadmin=yes\nadmin=no\n", "\(result)")
  }

  @Test func `a member of the admin group is no admin inside a container`() throws {
    let daemon = try DaemonUnderTest()
    try daemon.start(configuration: "[Access]\nAdminGroup=games\n")
    let games = try #require(unsafe getgrnam("games")?.pointee.gr_gid)
    let host = try PeerConnection(2_001, group: Int(games), of: daemon)
    #expect(try host.ask("whoami").last?.hasSuffix("admin=yes") == true)
    let group = try ControlGroup("docker-\(containerID()).scope")
    let script = #"echo $$ >"$0/cgroup.procs" && exec unshare --pid --fork "$@""#
    let inside = try run(
      [
        "sh", "-c", script, group.path, "setpriv", "--reuid=2001", "--regid=\(games)", "--clear-groups", "socat", "-t",
        "20", "-", "UNIX-CONNECT:\(daemon.socket)",
      ], input: "whoami\n")
    #expect(inside.output.hasSuffix("admin=no\n"), "\(inside)")
  }
}
