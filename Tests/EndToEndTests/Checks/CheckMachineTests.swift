import Foundation
import IdentityCore
import TestSupport
import Testing

/// `identityctl check` of the machine-id and of a change of the machine.
@Suite(.enabled(if: isRoot, "mounts need root"), .tags(.plain)) struct CheckMachineTests {
  /// A copy of /etc without most of its folders, and folders in place of those in which D-Bus and the journal keep the
  /// machine-id.
  private struct MachineFolders {
    let path: String
    /// The command that runs another one in a mount namespace with these folders.
    var namespace: [String] {
      let mounts = ["etc": "/etc", "dbus": "/var/lib/dbus", "journal": "/var/log/journal"].map {
        "mkdir -p \($1) && mount --bind \(path)/\($0) \($1)"
      }
      return ["unshare", "--mount", "bash", "-c", "\(mounts.joined(separator: " && ")) && exec \"$@\"", "-"]
    }

    /// Copies /etc without its machine-id. Of its folders, programs need only the alternatives.
    init(_ daemon: DaemonUnderTest) throws {
      path = daemon.folder.appending(path: "machine").path
      let copy = "find /etc -maxdepth 1 ! -type d -exec cp -a -t \(path)/etc /etc/alternatives {} +"
      try #require(
        try run(["sh", "-c", "mkdir -p \(path)/dbus \(path)/journal \(path)/etc && \(copy)"]).status == 0)
      try write(nil)
    }

    /// Replaces the machine-id. Nil removes the file.
    func write(_ text: String?) throws {
      let file = URL(filePath: "\(path)/etc/machine-id")
      try? FileManager.default.removeItem(at: file)
      if let text { try Data(text.utf8).write(to: file) }
    }
  }

  @Test(arguments: [
    (nil, "missing"), ("", "empty"), ("uninitialized\n", "uninitialized"), ("nonsense\n", "malformed"),
    ("b76cc7b1bbdc489e93909d2043031de8\n", "known-bad"),
  ])
  func `check reports a bad machine-id, and warns that a new one renews every identifier`(
    text: String?, state: String
  ) throws {
    let daemon = try DaemonUnderTest().start()
    let folders = try MachineFolders(daemon)
    try folders.write(text)
    let before = try Diagnosis(of: daemon.socket, through: folders.namespace)["machine-id"]
    #expect(before.result == "failed")
    #expect(before.facts["state"]?.text == state)
    #expect(before.cause?.contains("identityd renews every identifier") == true, "\(before)")
    let mend = try #require(before.mend)
    let restart = try #require(mend.range(of: " && kill "))
    #expect(mend[..<restart.lowerBound].hasSuffix("systemd-machine-id-setup"), "\(mend)")
    #expect(mend.hasSuffix(" && identityctl --socket=\(daemon.socket) machine acknowledge"), "\(mend)")
    if let text, text.count > 30 { #expect(!"\(before)".contains(text.dropLast())) }
    // Before the daemon is restarted, its identifiers can still be kept.
    let mended = try run(folders.namespace + ["bash", "-c", String(mend[..<restart.lowerBound])])
    #expect(mended.status == 0, "\(mended)")
    let after = try Diagnosis(of: daemon.socket, through: folders.namespace)["machine-id"]
    #expect(after.result == "warning" && after.mend?.hasPrefix("kill ") == true, "\(after)")
    #expect(after.cause?.contains("identityd renews every identifier") == true, "\(after)")
  }

  @Test(arguments: [
    ("dbus/machine-id", "", false), ("journal/", "", false), ("journal/", "uninitialized\n", false),
    ("journal/", "11111111111111111111111111111111\n", false), ("dbus/machine-id", "", true),
    ("journal/", "11111111111111111111111111111111\n", true),
  ])
  func `check finds a copy of the machine-id, whose return keeps or brings back every identifier`(
    place: String, bad: String, isRestarted: Bool
  ) throws {
    let daemon = try DaemonUnderTest()
    let folders = try MachineFolders(daemon)
    let id = "0123456789abcdef0123456789abcdef"
    try folders.write("\(id)\n")
    try daemon.start(through: folders.namespace)
    let identifiers = try ["device", "installation", "vendor"].map { try daemon.uuid("get \($0)") }
    let isFolder = place.hasSuffix("/")
    let copy = "\(folders.path)/\(place)"
    let make = isFolder ? "mkdir -p \(copy)\(String(repeating: "f", count: 32)) \(copy)\(id)" : "echo \(id) >\(copy)"
    try #require(try run(["sh", "-c", make]).status == 0)
    if isRestarted {
      daemon.end()
      try folders.write("\(String(repeating: "2", count: 32))\n")
      try daemon.start(through: folders.namespace)
      #expect(try daemon.uuid("get device") != identifiers[0])
      #expect(try daemon.client().statusValue("machine-change")?.contains("machine-changed 20") == true)
    }
    try folders.write(bad)
    let before = try Diagnosis(of: daemon.socket, through: folders.namespace)["machine-id"]
    #expect(before.result == (bad.hasPrefix("1") ? "warning" : "failed"), "\(before)")
    #expect(!"\(before)".contains(id))
    let commands = try #require(before.mend).components(separatedBy: " && ").prefix { !$0.hasPrefix("kill ") }
    let mended = try run(folders.namespace + ["bash", "-c", commands.joined(separator: " && ")])
    #expect(mended.status == 0, "\(mended)")
    daemon.end()
    try daemon.start(through: folders.namespace)
    #expect(try ["device", "installation", "vendor"].map { try daemon.uuid("get \($0)") } == identifiers)
    let after = try Diagnosis(of: daemon.socket, through: folders.namespace)["machine-id"]
    #expect(after.result == "ok", "\(after)")
  }

  @Test func `a renewal is logged at each start and shown by check until an admin acknowledges it`() throws {
    let daemon = try DaemonUnderTest()
    let folders = try MachineFolders(daemon)
    for (digit, times) in [("1", 0), ("2", 1), ("2", 2)] {
      if times > 0 { daemon.end() }
      try folders.write("\(String(repeating: digit, count: 32))\n")
      try daemon.start(through: folders.namespace)
      _ = try daemon.uuid("get device")
      if times > 0 { try daemon.waitForLog("This is another machine than before (machine-changed)", times: times) }
    }
    let known = ["1": "former", "2": "current", "3": "unknown"]
    for (digit, word) in known {
      let answer = try daemon.ask("machine compare \(String(repeating: digit, count: 32))")
      #expect(answer.hasPrefix("OK \(word)"), "\(answer)")
    }
    let found = try Diagnosis(of: daemon.socket, through: folders.namespace)["machine-id"]
    #expect(found.result == "warning")
    #expect(found.mend == "identityctl --socket=\(daemon.socket) machine acknowledge")
    #expect(try daemon.ask("machine acknowledge") == "OK")
    #expect(try Diagnosis(of: daemon.socket, through: folders.namespace)["machine-id"].result == "ok")
    daemon.end()
    try daemon.start(through: folders.namespace)
    #expect(try daemon.client().statusValue("machine-change") == nil)
  }

  @Test func `check warns of changed hardware until an admin acknowledges it`() throws {
    let daemon = try DaemonUnderTest()
    for hardware in 1...2 {
      try daemon.start(hardware: hardware)
      _ = try daemon.uuid("get device")
      if hardware == 1 { daemon.end() }
    }
    let device = try daemon.uuid("get device")
    let machine = try daemon.diagnosis()["machine-id"]
    #expect(machine.result == "warning")
    #expect(machine.cause?.contains("hardware-changed ") == true, "\(machine)")
    // Only a person knows whether this is the copy, on which an acknowledgement would do harm later: the command looks.
    #expect(machine.mend == "identityctl --socket=\(daemon.socket) history device")
    let environment = ["PATH": "\(DaemonUnderTest.binaries.path):/usr/bin:/bin"]
    let looked = try run(["bash", "-c", try #require(machine.mend)], environment: environment)
    #expect(looked.status == 0 && looked.output.contains(device), "\(looked)")
    #expect(try daemon.diagnosis()["machine-id"].result == "warning")
    #expect(machine.cause?.contains("run 'identityctl --socket=\(daemon.socket) machine acknowledge'") == true)
    #expect(try daemon.ask("machine acknowledge") == "OK")
    #expect(try daemon.diagnosis()["machine-id"].result == "ok")
  }
}
