import Foundation
import IdentityWire
import TestSupport
import Testing

/// Peers in cgroups that an ordinary user made, in a cgroup that root delegated to that user (`Delegate=` of
/// systemd.resource-control(5)).
@Suite(.enabled(if: canMakeControlGroups, "control groups can be made by root alone, where libsystemd looks for them"))
struct DelegatedGroupTests {
  private static let user = 2_001
  private static let id = String(repeating: "ab", count: 32)
  /// Names of which most are a container's or a service's somewhere else.
  private static let names = [
    "machine-victim.scope", "docker-\(id).scope", "docker-victim.scope", "libpod-\(id).scope", "crio-\(id).scope",
    "cri-containerd-\(id).scope", "nerdctl-\(id).scope", "lxc.payload.victim", "lxc/victim", id, "docker/\(id)",
    "machine.slice/victim.scope", "machine.slice/machine-victim.scope", "system.slice/docker-\(id).scope",
    "systemd-nspawn@victim.service", "systemd-nspawn@victim.service/payload", "victim.service", "payload",
    "user.slice/user-2002.slice/user@2002.service/app.slice/victim.service",
  ]

  /// Starts a daemon with a manifest for the container `victim`, in which that container has stored a secret.
  private func daemon() throws -> DaemonUnderTest {
    let daemon = try DaemonUnderTest()
    let apps = daemon.folder.appending(path: "apps.d")
    try FileManager.default.createDirectory(at: apps, withIntermediateDirectories: true)
    try Data("[App]\nContainer=victim\n".utf8).write(to: apps.appending(path: "org.victim.app"))
    try daemon.start(configuration: "[Apps]\nDirectories=\(apps.path)\n")
    let victim = try ControlGroup("machine-victim.scope")
    let stored = try daemon.ask(
      ["whoami", "item put service=s account=a data=c2VjcmV0"], in: victim, Namespaces.own, as: 0)
    try #require(stored[0].hasPrefix("OK org.victim ") && stored[1] == "OK created", "\(stored)")
    return daemon
  }

  /// Delegates a cgroup to the user, who makes each of the cgroups in it and connects from there.
  ///
  /// - Returns: the received lines, by the name of the cgroup.
  private func heard(in place: String, by daemon: DaemonUnderTest) throws -> [String: [String]] {
    let group = try ControlGroup(place)
    try #require(try run(["chown", "--recursive", "\(Self.user)", group.path]).status == 0)
    let script = """
      import os, socket, sys
      path, group, names = sys.argv[1], sys.argv[2], sys.argv[3:]
      def enter(folder):
          with open(folder + "/cgroup.procs", "w") as file: file.write(str(os.getpid()))
      for name in names:
          os.makedirs(group + "/" + name)
          enter(group + "/" + name)
          with socket.socket(socket.AF_UNIX) as s:
              s.connect(path)
              # A refused client may be unable to write, and its connection is reset if it does.
              try:
                  s.sendall(b"whoami\\nitem read service=s account=a\\nquit\\n")
              except BrokenPipeError: pass
              try:
                  for line in s.makefile(): print(name, line, sep="\\t", end="")
              except ConnectionResetError: pass
          enter(group)
          while name:
              os.rmdir(group + "/" + name)
              name = os.path.dirname(name)
      """
    let result = try run(
      [
        "sh", "-c", #"echo $$ >"$0/cgroup.procs" && exec "$@""#, group.path, "setpriv", "--reuid=\(Self.user)",
        "--regid=\(Self.user)", "--clear-groups", "/usr/bin/python3", "-c", script, daemon.socket, group.path,
      ] + Self.names)
    try #require(result.status == 0, "\(result)")
    var heard: [String: [String]] = [:]
    for line in result.output.split(separator: "\n") {
      let words = line.split(separator: "\t").map(String.init)
      heard[words[0], default: []].append(words[1])
    }
    #expect(Set(heard.keys) == Set(Self.names))
    return heard
  }

  /// Returns whether a client has read no item, and is no admin.
  private func hasNothing(_ lines: [String]) -> Bool {
    lines.count == 3 && lines[0].hasSuffix(" admin=no") && lines[1].hasPrefix("ERR not-found ")
  }

  @Test(arguments: ["run-1.scope", "session-1.scope", "data.mount"])
  func `row 37: a client in any cgroup below a scope is refused, and nothing is taken from its name`(place: String)
    throws
  {
    let daemon = try daemon()
    for (name, lines) in try heard(in: place, by: daemon) {
      let refusal = "ERR denied the client is in a control group below \(place), "
      #expect(lines.count == 1 && lines[0].hasPrefix(refusal), "\(name): \(lines)")
    }
    // Root has no rights there either, and all of them at the top of the scope.
    let below = try ControlGroup("\(place)/payload")
    #expect(try daemon.greeting(in: below, Namespaces.own, as: 0).first?.hasPrefix("ERR denied ") == true)
    let top = try ControlGroup(place)
    #expect(try daemon.ask(["whoami"], in: top, Namespaces.own, as: 0)[0].hasSuffix(" admin=yes"))
    let refused = try daemon.client().ask("stats").filter { $0.contains("connections-refused") }
    #expect(refused.contains { $0.contains("unattested") && $0.contains("\(Self.names.count + 1)") }, "\(refused)")
  }

  @Test func `a client in any cgroup below a service is that service`() throws {
    for (name, lines) in try heard(in: "box.service", by: try daemon()) {
      #expect(hasNothing(lines) && lines[0].hasPrefix("OK unit:box.service:\(Self.user) "), "\(name): \(lines)")
    }
  }

  @Test func `a client in any cgroup below a container is that container`() throws {
    let outer = String(repeating: "cd", count: 32)
    for (name, lines) in try heard(in: "docker-\(outer).scope", by: try daemon()) {
      #expect(hasNothing(lines) && lines[0].hasPrefix("OK container:\(outer) "), "\(name): \(lines)")
    }
  }

  @Test(arguments: ["app.slice", "app.slice/run-1.scope"])
  func `a client in any cgroup below a user's manager is an app of that user`(place: String) throws {
    let manager = "user@\(Self.user).service"
    for (name, lines) in try heard(in: "\(manager)/\(place)", by: try daemon()) {
      let app = try #require(lines[0].split(separator: " ").dropFirst().first, "\(name): \(lines)")
      let isOwn = app == "user:\(Self.user)" || app.hasSuffix("@\(Self.user)")
      #expect(hasNothing(lines) && isOwn, "\(name): \(lines)")
    }
  }

  @Test(arguments: [
    "docker-4qzsv0k4o0eyj4e2gchs2lb0k.scope", "libpod-web.scope", "crio-web.scope", "cri-containerd-web.scope",
    "nerdctl-web.scope", "buildkit-web.scope", "runc-web.scope", "docker/buildkit/4qzsv0k4o0eyj4e2gchs2lb0k",
    "docker/web", "lxc.payload.web.service",
  ])
  func `a container with an ID of any form is a stranger to the host's user of its number`(name: String) throws {
    let daemon = try DaemonUnderTest().start()
    let host = try OtherUser(Self.user, of: daemon)
    #expect(try host.ask("item put service=s account=a data=aG9zdA==") == "OK created\n")
    let group = try ControlGroup(name)
    let heard = try daemon.ask(
      ["whoami", "item read service=s account=a", "item read service=s account=a group=user:\(Self.user)"], in: group,
      Namespaces.own, as: Self.user)
    #expect(heard[0].hasPrefix("OK container:") && heard[0].contains("web") || name.contains("4qz"), "\(heard)")
    #expect(heard[1].hasPrefix("ERR not-found ") && heard[2].hasPrefix("ERR denied "), "\(heard)")
    #expect(try daemon.ask(["whoami"], in: group, Namespaces.own, as: 0)[0].hasSuffix(" admin=no"))
    try host.end()
  }
}
