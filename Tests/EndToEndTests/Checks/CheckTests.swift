import Doctor
import Foundation
import IdentityWire
import LinuxSystem
import TestSupport
import Testing

/// `identityctl check`. Each check fails because of a real fault, and the repair command that it prints must remove
/// the fault.
@Suite(.enabled(if: isRoot, "other users and mounts need root"), .tags(.plain)) struct CheckTests {
  private let other = 4_711

  @Test func `check of a healthy daemon shows every check, and none fails`() throws {
    let daemon = try DaemonUnderTest().start()
    _ = try daemon.uuid("get device")
    let found = try daemon.diagnosis()
    #expect(found.ok)
    #expect(found.checks.map(\.name) == Check.all.map(\.name))
    for name in ["socket", "peer", "manifests", "master-key", "store", "space", "permissions", "versions"] {
      #expect(try found[name].result == "ok", "\(found)")
    }
    for name in ["unit", "configuration"] { #expect(try found[name].result == "skipped") }
    #expect(try found["store"].facts["directory"]?.text == daemon.state.path)
    // The output never contains the machine-id, even if no check fails.
    let machineID = (try? String(contentsOfFile: "/etc/machine-id", encoding: .utf8)) ?? ""
    let text = try identityctl(daemon, "check", "--json").output
    if machineID.count > 30 { #expect(!text.contains(machineID.trimmingCharacters(in: .newlines))) }
  }

  @Test func `the report matches its JSON Schema, also for a faulty daemon and without a daemon`() throws {
    let daemon = try DaemonUnderTest()
    try manifest("org.example.a", "[App]\nVendor=org.example\nUser=daemon\nVersionOrder=round\n", daemon)
    try daemon.start(configuration: "[Apps]\nDirectories=\(apps(daemon))\n")
    let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
    func report() throws -> (String, String) {
      ("check-report", try run([program, "--socket=\(daemon.socket)", "check", "--json"]).output)
    }
    let whole = try report()
    daemon.end()
    #expect(try JSONSchema.faults(in: [whole, try report()]) == "")
  }

  @Test func `check VALUE still tests whether VALUE is a UUID`() throws {
    let daemon = try DaemonUnderTest().start()
    #expect(try identityctl(daemon, "check", "557E5958D3904CBFB9282A2B19A1399A").output.hasPrefix("valid "))
    #expect(try identityctl(daemon, "check", "x").status == 1)
    #expect(try identityctl(daemon, "--quiet", "check").output == "")
    let help = try run([DaemonUnderTest.binaries.appending(path: "identityctl").path, "--help", "check"]).output
    #expect(help.contains("check VALUE ") && help.contains("check  "), "\(help)")
  }

  @Test func `checks that need an admin are skipped, not failed, for other users`() throws {
    let daemon = try DaemonUnderTest().start()
    let found = try daemon.diagnosis(asUser: other)
    #expect(found.ok)
    #expect(try found["peer"].facts["admin"] == false)
    for name in ["space", "permissions", "machine-id"] {
      #expect(try found[name].result == "skipped")
      let cause = try #require(try found[name].cause)
      #expect(
        cause.hasSuffix("is shown only to admins and members of MonitorGroup=; run the check as root"), "\(cause)")
    }
    for name in ["master-key", "store", "versions"] { #expect(try found[name].result == "ok") }
  }

  @Test func `check tells a non-admin only that a manifest is faulty, and tells root which one`() throws {
    let daemon = try DaemonUnderTest()
    try manifest("org.example.a", "[App]\nVendor=org.example\nUser=daemon\nVersionOrder=round\n", daemon)
    try daemon.start(configuration: "[Apps]\nDirectories=\(apps(daemon))\n")
    let found = try daemon.diagnosis(asUser: other)
    let manifests = try found["manifests"]
    #expect(!found.ok && manifests.result == "failed")
    #expect(manifests.cause?.hasPrefix("1 fault is in the manifests; the text is shown only to admins") == true)
    #expect(!"\(found)".contains("org.example.a"))
    #expect(manifests.facts["faults"] == 1)
    let command = try #require(manifests.mend)
    #expect(command == "sudo identityctl --socket=\(daemon.socket) check")
    let asked = try run(
      ["bash", "-c", "sudo() { \"$@\"; }; \(command)"],
      environment: ["PATH": "\(DaemonUnderTest.binaries.path):/usr/bin:/bin"])
    #expect(asked.status == 8 && asked.output.contains("org.example.a.app:4"), "\(asked)")
  }

  @Test func `check run as the daemon's own user can examine the state directory`() throws {
    let daemon = try DaemonUnderTest()
    try FileManager.default.setAttributes([.ownerAccountID: other], ofItemAtPath: daemon.folder.path)
    try daemon.start(through: ["setpriv", "--reuid=\(other)", "--regid=\(other)", "--clear-groups"])
    let found = try daemon.diagnosis(asUser: other)
    #expect(found.ok)
    for name in ["store", "space", "permissions"] { #expect(try found[name].result == "ok") }
  }

  // MARK: socket

  /// Runs the repair command for a socket other than the system's. The command starts a daemon without systemd.
  private func startByHand(_ command: String?, _ daemon: DaemonUnderTest) throws -> Process {
    let process = Process()
    process.executableURL = URL(filePath: "/bin/bash")
    process.arguments = ["-c", "exec \(try #require(command))"]
    let path = "\(DaemonUnderTest.binaries.path):/usr/bin:/bin"
    process.environment = ["PATH": path, "STATE_DIRECTORY": daemon.state.path]
    process.standardError = FileHandle.nullDevice
    try process.runUnmasked()
    let deadline = Date(timeIntervalSinceNow: patience)
    while Date() < deadline, (try? daemon.ask("ping")) != "OK" { usleep(5_000) }
    return process
  }

  @Test func `check's repair command starts a stopped daemon, with its socket gone or left behind`() throws {
    let daemon = try DaemonUnderTest().start()
    for (signal, cause) in [(SIGTERM, "is not there"), (SIGKILL, "was left behind")] {
      daemon.end(with: signal)
      let found = try daemon.diagnosis()
      let socket = try found["socket"]
      #expect(!found.ok && socket.result == "failed")
      #expect(socket.cause?.contains(cause) == true, "\(socket)")
      #expect(socket.mend == "identityd --socket=\(daemon.socket)")
      for name in ["peer", "master-key", "store", "versions"] { #expect(try found[name].result == "skipped") }
      let process = try startByHand(socket.mend, daemon)
      #expect(try daemon.diagnosis()["socket"].result == "ok")
      process.terminate()
      process.waitUntilExit()
      try daemon.start()
    }
  }

  @Test func `for the system's socket, check suggests systemctl restart identityd.socket`() throws {
    // Hides /run, so that neither a socket nor systemd is found.
    let hidden = ["unshare", "--mount", "sh", "-c", "mount -t tmpfs tmpfs /run && exec \"$@\"", "-"]
    let found = try Diagnosis(of: "/run/identityd/identityd.sock", through: hidden, asUser: other)
    #expect(try found["socket"].mend == "sudo systemctl restart identityd.socket")
    #expect(try found["unit"].cause == "systemd does not run here")
    #expect(try found["unit"].result == "skipped")
    #expect(
      try Diagnosis(of: "/run/identityd/identityd.sock", through: hidden)["socket"].mend
        == "systemctl restart identityd.socket")
  }

  @Test func `check names the mode of the socket or folder that keeps a user out`() throws {
    let daemon = try DaemonUnderTest().start()
    let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
    let asOther = ["setpriv", "--reuid=\(other)", "--regid=\(other)", "--clear-groups"]
    for (mode, path, cause) in [
      (0o000, daemon.socket, "uid \(other) may not use \(daemon.socket), which has mode 0000 and belongs to uid 0"),
      (0o700, daemon.folder.path, "uid \(other) may not enter \(daemon.folder.path), which has mode 0700"),
    ] {
      try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
      let denied = try run(asOther + [program, "--socket=\(daemon.socket)", "ping"])
      #expect(denied.status == 3 && denied.errors.contains("may not use \(daemon.socket); run 'identityctl check'"))
      let socket = try daemon.diagnosis(asUser: other)["socket"]
      #expect(socket.result == "failed")
      #expect(socket.cause == cause)
      #expect(socket.mend == "sudo chmod \(mode == 0 ? "0666" : "a+x") \(path)")
      try daemon.mend(socket)
      #expect(try daemon.diagnosis(asUser: other)["socket"].result == "ok")
    }
  }

  @Test func `check distinguishes a busy daemon from an absent one`() throws {
    let daemon = try DaemonUnderTest().start(configuration: "[Limits]\nConnectionsPerUser=1\n")
    let holder = try OtherUser(other, of: daemon)
    #expect(try holder.ask("ping") == "OK\n")
    let socket = try daemon.diagnosis(asUser: other)["socket"]
    #expect(socket.result == "failed")
    #expect(socket.cause?.hasPrefix("\(daemon.socket) is busy: ") == true, "\(socket)")
    #expect(socket.mend == "sudo ss -x -p src \(daemon.socket)")
    _ = try holder.quit()
    let deadline = Date(timeIntervalSinceNow: patience)
    while Date() < deadline, try daemon.diagnosis(asUser: other)["socket"].result != "ok" { usleep(20_000) }
    #expect(try daemon.diagnosis(asUser: other)["socket"].result == "ok")
  }

  @Test func `check gives up on a silent daemon after 10 seconds`() throws {
    let daemon = try DaemonUnderTest().start()
    kill(daemon.process.processIdentifier, SIGSTOP)
    let found = try Diagnosis(of: daemon.socket, comparesText: false)
    kill(daemon.process.processIdentifier, SIGCONT)
    #expect(try found["socket"].cause?.contains("nothing was answered in 10 seconds") == true)
    #expect(try found["socket"].mend == "ss -x -l -p src \(daemon.socket)")
    #expect(try daemon.diagnosis()["socket"].result == "ok")
  }

  @Test(
    arguments: [
      ("* a=b", "rows"), ("EVENT 1 device created", "65536 events instead of an answer"),
      ("a line without an end", "a line without an end"),
    ])
  func `check stops reading from a daemon that sends without end`(line: String, said: String) throws {
    let daemon = try DaemonUnderTest()
    let flood = daemon.folder.appending(path: "flood")
    let end = line.hasPrefix("a") ? " | tr -d '\\n'" : ""
    try Data("#!/bin/sh\nyes '\(line)'\(end)\n".utf8).write(to: flood)
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: flood.path)
    let listener = Process()
    listener.executableURL = URL(filePath: "/usr/bin/env")
    listener.arguments = ["socat", "UNIX-LISTEN:\(daemon.socket),fork", "EXEC:\(flood.path)"]
    listener.standardError = FileHandle.nullDevice
    try listener.runUnmasked()
    defer { listener.terminate() }
    // The file is there before anybody listens.
    let deadline = Date(timeIntervalSinceNow: patience)
    let connect = ["socat", "-u", "OPEN:/dev/null", "UNIX-CONNECT:\(daemon.socket)"]
    while Date() < deadline, try run(connect).status != 0 { usleep(5_000) }
    let found = try Diagnosis(of: daemon.socket, comparesText: false)
    #expect(try found["socket"].result == "failed")
    // With a sanitizer the client may be so slow that it reaches its timeout before the limit on what it reads.
    let cause = try found["socket"].cause ?? ""
    #expect(cause.contains(said) || cause.contains("nothing was answered in 10 seconds"), "\(found)")
    #expect(try found["store"].result == "skipped")
  }

  @Test func `check escapes control characters of an answer that is not the protocol`() throws {
    let played = try PlayedDaemon { _ in .lastLines("\u{1b}[2J\u{7} nonsense\n") }
    let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
    for options in [[], ["--json"]] {
      let result = try run([program, "--socket=\(played.socket)", "check"] + options)
      #expect(result.status == 8)
      #expect(result.output.contains("violates the protocol"))
      #expect(!result.output.unicodeScalars.contains { $0.value < 0x20 && $0 != "\n" }, "\(result.output)")
    }
  }

  // MARK: peer and versions

  @Test func `check warns a client that runs in another user namespace`() throws {
    let daemon = try DaemonUnderTest().start()
    let peer = try Diagnosis(of: daemon.socket, through: ["unshare", "--user"])["peer"]
    #expect(peer.result == "warning")
    #expect(peer.cause?.contains("uid 65534 here and uid 0 to the daemon") == true, "\(peer)")
    #expect(peer.mend == "sudo lsns --type=user" || peer.mend == "lsns --type=user")
    #expect(try daemon.diagnosis()["peer"].result == "ok")
  }

  @Test func `check shows which manifest applies to the peer`() throws {
    let daemon = try DaemonUnderTest()
    try manifest("org.example.root", "[App]\nVendor=org.example\nUser=root\n", daemon)
    try daemon.start(configuration: "[Apps]\nDirectories=\(apps(daemon))\n")
    let found = try daemon.diagnosis()
    // If the test runs in a system service, its unit may make the peer another app.
    let app = try daemon.ask("whoami").split(separator: " ")[1]
    #expect(try found["peer"].facts["app"] == .text(String(app)))
    if app == "org.example.root" { #expect(try found["peer"].facts["manifest"] == "org.example.root.app") }
    #expect(try found["manifests"].facts["folders"] == .list([apps(daemon)]))
  }

  @Test func `check reports another release, another protocol, and a daemon that denies the peer`() throws {
    func played(_ hello: String, _ whoami: String) throws -> PlayedDaemon {
      try PlayedDaemon { request in
        switch request {
        case "hello": .lines("\(hello)\n")
        case "whoami": .lines("\(whoami)\n")
        case "status": .lines("* store=ok\n* pid=1\nOK\n")
        default: .lines("OK\n")
        }
      }
    }
    let peer = "OK user:0 uid=0 gid=0 pid=1 admin=yes"
    let newer = try played("OK identityd 99.0 protocol=1", peer)
    #expect(try Diagnosis(of: newer.socket)["versions"].result == "warning")
    #expect(try Diagnosis(of: newer.socket)["versions"].cause?.contains("99.0") == true)
    let foreign = try played("OK identityd 99.0 protocol=2", "ERR denied nobody")
    let found = try Diagnosis(of: foreign.socket)
    #expect(!found.ok)
    for name in ["versions", "peer"] { #expect(try found[name].result == "failed") }
    #expect(try found["versions"].mend == "kill 1")
    #expect(try found["peer"].cause?.contains("nobody (denied)") == true)
    let real = try DaemonUnderTest().start()
    #expect(try real.diagnosis()["versions"].result == "ok")
  }

  // MARK: manifests

  private func apps(_ daemon: DaemonUnderTest) -> String { daemon.folder.appending(path: "apps.d").path }

  private func manifest(_ id: String, _ text: String, _ daemon: DaemonUnderTest) throws {
    try FileManager.default.createDirectory(
      atPath: apps(daemon), withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
    try Data(text.utf8).write(to: URL(filePath: "\(apps(daemon))/\(id).app"))
  }

  private func eventuallyInOrder(_ daemon: DaemonUnderTest) throws {
    try daemon.waitForLog("manifests")
    let deadline = Date(timeIntervalSinceNow: patience)
    while Date() < deadline, try daemon.client().statusValue("manifest-fault") != nil { usleep(20_000) }
    #expect(try daemon.diagnosis()["manifests"].result == "ok")
  }

  @Test func `check names a faulty manifest and its line, and its editor command repairs it`() throws {
    let daemon = try DaemonUnderTest()
    try manifest("org.example.a", "[App]\nVendor=org.example\nUser=daemon\nVersionOrder=round\n", daemon)
    try daemon.start(configuration: "[Apps]\nDirectories=\(apps(daemon))\n")
    let found = try daemon.diagnosis()
    let manifests = try found["manifests"]
    #expect(!found.ok && manifests.result == "failed")
    #expect(manifests.cause?.contains("org.example.a.app:4") == true, "\(manifests)")
    #expect(manifests.mend == "${EDITOR:-vi} \(apps(daemon))/org.example.a.app")
    try daemon.mend(manifests, editor: "sed -i s/round/linux/")
    try eventuallyInOrder(daemon)
  }

  @Test func `check warns of an unknown setting of a manifest with its line`() throws {
    let daemon = try DaemonUnderTest()
    try manifest("org.example.a", "[App]\nUser=daemon\nUsr=root\n", daemon)
    try daemon.start(configuration: "[Apps]\nDirectories=\(apps(daemon))\n")
    let found = try daemon.diagnosis()
    let manifests = try found["manifests"]
    #expect(found.ok && manifests.result == "warning")
    #expect(
      manifests.cause == "\(apps(daemon))/org.example.a.app:3: unknown setting [App] Usr=; it is ignored",
      "\(manifests)")
    #expect(manifests.mend == "${EDITOR:-vi} \(apps(daemon))/org.example.a.app")
    try daemon.mend(manifests, editor: "sed -i /Usr/d")
    try eventuallyInOrder(daemon)
  }

  @Test func `check names both of two conflicting manifests`() throws {
    let daemon = try DaemonUnderTest()
    for id in ["org.example.a", "org.example.b"] {
      try manifest(id, "[App]\nVendor=org.example\nUnit=one.service\n", daemon)
    }
    try daemon.start(configuration: "[Apps]\nDirectories=\(apps(daemon))\n")
    let manifests = try daemon.diagnosis()["manifests"]
    #expect(manifests.result == "failed")
    #expect(manifests.cause?.contains("both claim Unit=one.service") == true, "\(manifests)")
    #expect(manifests.mend == "${EDITOR:-vi} \(apps(daemon))/org.example.a.app \(apps(daemon))/org.example.b.app")
    // This editor changes only the first of the two files.
    let editor = daemon.folder.appending(path: "editor")
    try Data("#!/bin/sh\nexec sed -i s/one/other/ \"$1\"\n".utf8).write(to: editor)
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: editor.path)
    try daemon.mend(manifests, editor: editor.path)
    try eventuallyInOrder(daemon)
  }

  @Test(.enabled(if: canMakeControlGroups, "services are made of control groups, by root"))
  func `check warns if a service runs as several users and its manifest names none`() throws {
    let daemon = try DaemonUnderTest()
    let unit = "\(controlGroupName()).service"
    try manifest("org.example.a", "[App]\nVendor=org.example\nUnit=\(unit)\n", daemon)
    try daemon.start(configuration: "[Apps]\nDirectories=\(apps(daemon))\n")
    let group = try ControlGroup(unit)
    let first = try SleepingProcess(in: group, as: 1)
    #expect(try daemon.diagnosis()["manifests"].result == "ok")
    let second = try SleepingProcess(in: group, as: 2_001)
    let manifests = try daemon.diagnosis()["manifests"]
    #expect(manifests.result == "warning")
    #expect(manifests.cause?.contains("but \(unit) runs as several users (1, 2001)") == true, "\(manifests)")
    #expect(manifests.mend == "${EDITOR:-vi} \(apps(daemon))/org.example.a.app")
    try daemon.mend(manifests, editor: "sed -i -e $aUser=daemon")
    #expect(try daemon.diagnosis()["manifests"].result == "ok")
    withExtendedLifetime((first, second)) {}
  }

  @Test func `check fails on a world-writable folder or manifest, and its chmod repairs it`() throws {
    let daemon = try DaemonUnderTest()
    try manifest("org.example.a", "[App]\nVendor=org.example\nUser=daemon\n", daemon)
    try daemon.start(configuration: "[Apps]\nDirectories=\(apps(daemon))\n")
    for path in [apps(daemon), "\(apps(daemon))/org.example.a.app"] {
      try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: path)
      let manifests = try daemon.diagnosis()["manifests"]
      #expect(manifests.result == "failed")
      #expect(manifests.cause == "\(path) has mode 0777: everybody can change it")
      #expect(manifests.mend == "chmod go-w \(path)")
      try daemon.mend(manifests)
      #expect(try daemon.diagnosis()["manifests"].result == "ok")
    }
  }
}
