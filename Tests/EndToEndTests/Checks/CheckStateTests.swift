import Foundation
import IdentityCore
import TestSupport
import Testing

/// `identityctl check` of the master key, the store and the disk.
@Suite(.enabled(if: isRoot, "other users and mounts need root"), .tags(.plain)) struct CheckStateTests {
  @Test func `check reports a missing key and its former place, and restoring a copy repairs it`() throws {
    let daemon = try DaemonUnderTest().start()
    #expect(try daemon.ask("item put service=s account=a data=eA==") == "OK created")
    #expect(try daemon.diagnosis()["master-key"].facts["source"] == "file")
    daemon.end()
    let copy = daemon.folder.appending(path: "copy").path
    try #require(try run(["cp", "-a", daemon.state.path, copy]).status == 0)
    try FileManager.default.removeItem(at: daemon.masterKey)
    try daemon.start()
    let found = try daemon.diagnosis()
    let key = try found["master-key"]
    #expect(!found.ok && key.result == "failed")
    #expect(key.cause?.contains("no master key was found") == true, "\(key)")
    #expect(
      key.mend
        == "cp -a COPY/master.key \(daemon.state.path)/master.key && kill \(daemon.process.processIdentifier)")
    try daemon.mend(key, copy: copy)
    daemon.process.waitUntilExit()
    try daemon.start()
    #expect(try daemon.diagnosis()["master-key"].result == "ok")
    #expect(try daemon.ask("item read service=s account=a").hasPrefix("OK data=eA=="))
  }

  @Test(arguments: ["identityd.db", "store.key"])
  func `check reports a damaged store with the reason, and restoring a copy repairs it`(file: String) throws {
    let daemon = try DaemonUnderTest().start()
    let device = try daemon.uuid("get device")
    daemon.end()
    let copy = daemon.folder.appending(path: "copy").path
    try #require(try run(["cp", "-a", daemon.state.path, copy]).status == 0)
    try FileManager.default.removeItem(at: daemon.state.appending(path: file))
    try daemon.start()
    let found = try daemon.diagnosis()
    let store = try found["store"]
    #expect(!found.ok && store.result == "failed")
    #expect(store.facts["state"] == "damaged")
    let reason = try #require(store.facts["reason"]?.text)
    #expect(reason.contains("damaged"))
    // The copy of the whole directory takes changes back, and the cause says so.
    #expect(
      store.cause
        == reason
        + (file == "store.key"
          ? "; a copy of the state directory, whose path takes the place of COPY, has it"
          : "; a copy of the state directory, whose path takes the place of COPY, brings back its identifiers and "
            + "items, but those made since are lost. Without a copy, see 'Backup and restore' in identityd(8)"))
    // The key is a file that is in its place: the store is the only cause.
    #expect(found.findings.first?.check == "store" && found.findings.first?.symptomOf == nil, "\(found)")
    for name in ["peer", "master-key"] {
      let symptom = try found[name]
      #expect(symptom.result == "failed" && symptom.symptomOf == "store" && symptom.mend == nil, "\(symptom)")
    }
    let end = "kill \(daemon.process.processIdentifier)"
    let state = daemon.state.path
    #expect(
      store.mend
        == (file == "store.key"
          ? "cp -a COPY/store.key \(state)/store.key && \(end)"
          : "rm -rf \(state).next && cp -aT COPY \(state).next && \(end) && "
            + "mv --backup=numbered -T \(state) \(state).damaged && mv -T \(state).next \(state)"))
    // The commands with the placeholder, one line or not, change nothing.
    #expect(store.commands.count == 1)
    #expect(try run(["bash", "-c", #require(store.mend)]).status != 0)
    #expect(daemon.process.isRunning)
    #expect(try daemon.diagnosis()["store"].facts["reason"]?.text == reason)
    try daemon.mend(store, copy: copy)
    daemon.process.waitUntilExit()
    try daemon.start()
    #expect(try daemon.diagnosis()["store"].result == "ok")
    #expect(try daemon.uuid("get device") == device)
  }

  @Test func `a damaged store explains manifests that cannot be applied, and no error text becomes a command`() throws {
    let daemon = try DaemonUnderTest()
    let apps = daemon.folder.appending(path: "apps.d")
    try FileManager.default.createDirectory(
      at: apps, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
    let configuration = "[Apps]\nDirectories=\(apps.path)\n"
    try daemon.start(configuration: configuration)
    _ = try daemon.uuid("get device")
    daemon.end()
    let copy = daemon.folder.appending(path: "copy").path
    try #require(try run(["cp", "-a", daemon.state.path, copy]).status == 0)
    try FileManager.default.removeItem(at: daemon.state.appending(path: "identityd.db"))
    try Data("[App]\nUser=daemon\n".utf8).write(to: apps.appending(path: "org.example.a.app"))
    try daemon.start(configuration: configuration)
    let found = try daemon.diagnosis()
    let manifests = try found["manifests"]
    #expect(manifests.result == "failed" && manifests.symptomOf == "store" && manifests.mend == nil, "\(manifests)")
    #expect(found.findings.first?.check == "store", "\(found)")
    try daemon.mend(try found["store"], copy: copy)
    daemon.process.waitUntilExit()
    try daemon.start(configuration: configuration)
    let after = try daemon.diagnosis()
    for name in ["store", "manifests"] { #expect(try after[name].result == "ok", "\(after)") }
  }

  @Test(arguments: ["identityd.db", "identityd.db-wal", "store.key", "master.key"])
  func `a file of the store that was deleted live is written anew without a command, and check is clean then`(
    file: String
  ) throws {
    let daemon = try DaemonUnderTest().start()
    let device = try daemon.uuid("get device")
    #expect(try daemon.ask("item put service=s account=a data=eA==") == "OK created")
    try FileManager.default.removeItem(at: daemon.state.appending(path: file))
    // The daemon first logs that the file is gone, then that changes are written again.
    try daemon.waitForLog("changes are possible again")
    #expect(try daemon.diagnosis()["store"].result == "ok")
    // The next start finds everything.
    daemon.end()
    try daemon.start()
    #expect(try daemon.diagnosis()["store"].result == "ok")
    #expect(try daemon.uuid("get device") == device)
    #expect(try daemon.ask("item read service=s account=a").hasPrefix("OK data=eA=="))
  }

  @Test func `check names the read-only mount of the state, and its command makes it writable`() throws {
    let daemon = try DaemonUnderTest().start()
    _ = try daemon.uuid("get device")
    daemon.end()
    let (state, copy) = (daemon.state.path, daemon.folder.appending(path: "copy").path)
    try #require(try run(["cp", "-a", state, copy]).status == 0)
    let mount = """
      mount -t tmpfs -o mode=0700 tmpfs '\(state)'
      cp -a '\(copy)/.' '\(state)'
      mount -o remount,ro '\(state)'
      exec "$@"
      """
    try daemon.start(through: ["unshare", "--mount", "sh", "-euc", mount, "-"])
    let beside = ["nsenter", "--target", "\(daemon.process.processIdentifier)", "--mount"]
    let found = try Diagnosis(of: daemon.socket, through: beside)
    let first = try #require(found.findings.first)
    #expect(!found.ok && first.check == "space", "\(found)")
    #expect(first.cause == "\(state) is on a file system that is mounted read-only at \(state)")
    #expect(try found["store"].symptomOf == "space" && found["store"].mend == nil, "\(found)")
    let commands = try #require(first.mend).components(separatedBy: " && ")
    #expect(commands == ["mount -o remount,rw \(state)", "kill \(daemon.process.processIdentifier)"])
    // The second command ends the daemon, and the mount with it.
    try #require(try run(beside + ["sh", "-c", commands[0]]).status == 0)
    try daemon.waitForLog("changes are possible again")
    #expect(try Diagnosis(of: daemon.socket, through: beside)["space"].result == "ok")
  }

  @Test func `check warns of files set aside until its repair command removes them`() throws {
    let daemon = try DaemonUnderTest().start()
    let name = "witness.damaged-1 \n"
    try Data().write(to: daemon.state.appending(path: name))
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o600], ofItemAtPath: daemon.state.appending(path: name).path)
    let found = try daemon.diagnosis()
    #expect(found.ok)
    #expect(try found["store"].result == "warning")
    #expect(try found["store"].mend == "rm $'\(daemon.state.path)/witness.damaged-1 \\u000a'")
    try daemon.mend(try found["store"])
    #expect(try daemon.diagnosis()["store"].result == "ok")
  }

  @Test func `check fails on a full disk and passes once there is room`() throws {
    let daemon = try DaemonUnderTest()
    try FileManager.default.createDirectory(
      at: daemon.state, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    let mount = "mount -t tmpfs -o mode=0700,size=640k tmpfs \(daemon.state.path) && exec \"$@\""
    try daemon.start(through: ["unshare", "--mount", "sh", "-c", mount, "-"])
    let beside = ["nsenter", "--target", "\(daemon.process.processIdentifier)", "--mount"]
    let client = try daemon.client()
    let secret = String(repeating: "A", count: 4_000)
    for number in 0..<100 where try client.ask("item put service=s account=a\(number) data=\(secret)") != ["OK created"]
    {
      break
    }
    var found = try Diagnosis(of: daemon.socket, through: beside)
    #expect(!found.ok)
    #expect(try found["space"].result == "failed")
    #expect(try found["store"].result == "failed")
    #expect(try found["store"].facts["state"] == "no-space")
    #expect(try found["space"].mend == "df -h \(daemon.state.path)")
    #expect(try found["store"].symptomOf == "space" && found["store"].mend == nil, "\(found)")
    // The repair command only shows the lack of space. The test provides the space.
    try #require(try run(beside + ["mount", "-o", "remount,size=256m", daemon.state.path]).status == 0)
    try daemon.eventually("item put service=s account=later data=eA==")
    found = try Diagnosis(of: daemon.socket, through: beside)
    for name in ["space", "store"] { #expect(try found[name].result == "ok") }
  }

  @Test func `check fails on a wrong mode or owner, and its repair command corrects it`() throws {
    let daemon = try DaemonUnderTest().start()
    let database = daemon.state.appending(path: "identityd.db").path
    for (path, mode, right) in [(daemon.state.path, 0o750, "0700"), (database, 0o644, "0600")] {
      try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
      let found = try daemon.diagnosis()
      let permissions = try found["permissions"]
      #expect(!found.ok && permissions.result == "failed")
      #expect(permissions.cause == "\(path) has mode 0\(String(mode, radix: 8)), not \(right)")
      #expect(permissions.mend == "chmod \(right) \(path)")
      try daemon.mend(permissions)
      #expect(try daemon.diagnosis()["permissions"].result == "ok")
    }
    try #require(try run(["chown", "4711", database]).status == 0)
    #expect(try daemon.diagnosis()["permissions"].mend == "chown 0 \(database)")
    try daemon.mend(try daemon.diagnosis()["permissions"])
    #expect(try daemon.diagnosis()["permissions"].result == "ok")
  }

  @Test func `check warns of a sealed store until the next start`() throws {
    let daemon = try DaemonUnderTest().start()
    #expect(try daemon.ask("seal") == "OK")
    let store = try daemon.diagnosis()["store"]
    #expect(store.result == "warning" && store.mend == "kill \(daemon.process.processIdentifier)")
    try daemon.mend(store)
    daemon.process.waitUntilExit()
    try daemon.start()
    #expect(try daemon.diagnosis()["store"].result == "ok")
  }

  /// Returns a command that runs another one with a clock behind the true one, and with a time service as given.
  ///
  /// - Parameters:
  ///   - seconds: the lag of the clock.
  ///   - unit: a shell command that makes the file `unit` of the only time service; nil for no time service.
  private func lag(_ seconds: Int, timeService unit: String?, _ daemon: DaemonUnderTest) throws -> [String] {
    let library = daemon.folder.appending(path: "clock.so").path
    let file = daemon.folder.appending(path: "clock")
    if !FileManager.default.fileExists(atPath: library) {
      try #require(
        try run(["cc", "-shared", "-fPIC", "-x", "c", "-o", library, "-"], input: ClockTests.clock).status == 0)
    }
    try Data("\(-seconds)\n".utf8).write(to: file, options: .atomic)
    // Hides the time services of the test machine.
    let services = """
      mount -t tmpfs tmpfs /run
      if [ -d /usr/lib/systemd/ntp-units.d ]; then mount -t tmpfs tmpfs /usr/lib/systemd/ntp-units.d; fi
      mkdir -p /run/systemd/ntp-units.d /run/systemd/system
      unit=/run/systemd/system/identityd-test-time.service
      \(unit.map { "\($0); echo ${unit##*/} >/run/systemd/ntp-units.d/test.list" } ?? "")
      exec "$@"
      """
    let clock = ["env", "LD_PRELOAD=\(library)", "CLOCK_FILE=\(file.path)"]
    return ["unshare", "--mount", "sh", "-euc", services, "-"] + clock
  }

  @Test func `check fails on a clock behind the last event, and tells if it is behind the release too`() throws {
    let daemon = try DaemonUnderTest().start()
    func clock(_ seconds: Int) throws -> Diagnosis.Entry {
      try Diagnosis(of: daemon.socket, through: try lag(seconds, timeService: ": >$unit", daemon))["clock"]
    }
    let late = try clock(3_600)
    #expect(late.result == "failed", "\(late)")
    #expect(late.cause?.contains("the last event happened at \(late.facts["last-event"]?.text ?? "-")") == true)
    #expect(late.mend == "timedatectl set-ntp true")
    let early = try clock(Int(Date().timeIntervalSince1970) - 86_400)
    #expect(early.result == "failed", "\(early)")
    #expect(early.cause?.contains("this release is from \(Version.released)") == true)
    #expect(try clock(0).result != "failed")
  }

  @Test func `check names a time service that is masked, or says to install one`() throws {
    let daemon = try DaemonUnderTest().start()
    func clock(_ unit: String?) throws -> Diagnosis.Entry {
      try Diagnosis(of: daemon.socket, through: try lag(3_600, timeService: unit, daemon))["clock"]
    }
    let masked = try clock("ln -s /dev/null $unit")
    #expect(masked.cause?.hasSuffix(", and identityd-test-time.service is masked") == true, "\(masked)")
    #expect(masked.mend == "systemctl unmask identityd-test-time.service && timedatectl set-ntp true")
    let missing = try clock(nil)
    #expect(missing.cause?.contains("no time service is installed; install one, such as") == true, "\(missing)")
    if FileManager.default.fileExists(atPath: "/usr/bin/apt-get") {
      #expect(missing.mend == "apt-get install systemd-timesyncd")
    }
  }
}
