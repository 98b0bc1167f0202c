import Foundation
import TestSupport
import Testing

/// The epoch of the sequence numbers. Within an epoch, no sequence number is used twice.
@Suite(.enabled(if: isRoot, "it takes an admin"), .tags(.plain)) struct EpochTests {
  private func epoch(_ daemon: DaemonUnderTest) throws -> String {
    let reply = try daemon.ask("subscribe")
    let word = try #require(reply.split(separator: " ").last?.dropFirst("epoch=".count))
    #expect(try daemon.client().statusValue("epoch") == String(word))
    return String(word)
  }

  @Test func `the epoch survives restarts and kills, and a subscriber that names it continues`() throws {
    let daemon = try DaemonUnderTest().start()
    let epoch = try epoch(daemon)
    try #require(try daemon.ask("account set a") == "OK")
    for signal in [SIGTERM, SIGKILL] {
      daemon.end(with: signal)
      try daemon.start()
      #expect(try self.epoch(daemon) == epoch)
      let client = try daemon.client()
      #expect(try client.ask("subscribe account since=0 epoch=\(epoch)") == ["OK 0 epoch=\(epoch)"])
      #expect(try client.line()?.contains("account changed value=a ") == true)
    }
  }

  @Test func `a sequence number of another epoch is gone, whether it was reached or not`() throws {
    let daemon = try DaemonUnderTest().start()
    let epoch = try epoch(daemon)
    for number in [0, 1, 1_000_000] {
      let reply = try daemon.ask("subscribe since=\(number) epoch=elsewhere")
      #expect(reply.hasPrefix("ERR gone the sequence numbers began anew with epoch \(epoch); "), "\(reply)")
    }
  }

  /// The commands of `identityctl` that follow events, with a number of an earlier epoch.
  private func expectGone(_ daemon: DaemonUnderTest, _ epoch: String, began next: String) throws {
    let earlier = ["account", "--since=0", "--epoch=\(epoch)", "--json"]
    let wait = try identityctl(at: daemon.socket, ["wait", "--timeout=\(patience)"] + earlier)
    #expect((wait.status, wait.errors) == (20, ""))
    #expect(wait.output.hasPrefix("{\"error\":{\"code\":\"gone\","), "\(wait)")
    #expect(wait.output.contains("the sequence numbers began anew with epoch \(next)"), "\(wait)")

    let monitor = Process()
    let (output, errors) = (Pipe(), Pipe())
    monitor.executableURL = DaemonUnderTest.binaries.appending(path: "identityctl")
    monitor.arguments = ["--socket=\(daemon.socket)", "monitor"] + earlier
    monitor.standardOutput = output
    monitor.standardError = errors
    try monitor.runUnmasked()
    try daemon.waitForStatus("subscribers", "1")
    try #require(try daemon.ask("account set \(UUID())") == "OK")
    let line = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
    #expect(line.contains(",\"epoch\":\"\(next)\",\"time\":") && line.contains(",\"topic\":\"account\","), "\(line)")
    monitor.terminate()
    monitor.waitUntilExit()
    let complaint = String(decoding: try errors.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
    #expect(complaint.contains("events may have been missed"), "\(complaint)")
    try daemon.waitForStatus("subscribers", "0")
  }

  @Test func `identityctl tells a number of an earlier epoch from one of the present epoch`() throws {
    let daemon = try DaemonUnderTest().start()
    let first = try epoch(daemon)
    try #require(try daemon.ask("account set a") == "OK")
    let known = try identityctl(
      at: daemon.socket, ["wait", "account", "--since=0", "--epoch=\(first)", "--json", "--format=upper"])
    #expect(known.status == 0 && known.output.contains(",\"epoch\":\"\(first)\","), "\(known)")

    let backup = daemon.folder.appending(path: "backup").path
    #expect(try identityctl(at: daemon.socket, ["backup", backup, "--passphrase-fd=3"]).status == 0)
    try #require(try daemon.ask("account set b") == "OK")
    #expect(try identityctl(at: daemon.socket, ["restore", backup, "--passphrase-fd=3", "--yes"]).status == 0)
    let second = try epoch(daemon)
    #expect(second != first)
    let unaware = try identityctl(at: daemon.socket, ["wait", "account", "--since=0"])
    #expect(unaware.status == 0, "without an epoch, nothing tells that the number is an earlier one: \(unaware)")
    try expectGone(daemon, first, began: second)

    daemon.end()
    try FileManager.default.removeItem(at: daemon.state)
    try daemon.start()
    try expectGone(daemon, second, began: try epoch(daemon))
  }

  @Test func `a first start, a restore and an accepted older copy begin a new epoch`() throws {
    let daemon = try DaemonUnderTest().start()
    var epochs = [try epoch(daemon)]
    try #require(try daemon.ask("account set a") == "OK")

    let backup = daemon.folder.appending(path: "backup")
    func control(_ words: String...) throws {
      #expect(try identityctl(at: daemon.socket, words + ["--passphrase-fd=3", "--yes"]).status == 0)
    }
    try control("backup", backup.path)
    try #require(try daemon.ask("account set b") == "OK")
    try control("restore", backup.path, "--dry-run")
    #expect(try epoch(daemon) == epochs[0], "a dry run changes nothing")
    try control("restore", backup.path)
    epochs.append(try epoch(daemon))

    daemon.end()
    let copy = daemon.folder.appending(path: "copy")
    try FileManager.default.copyItem(at: daemon.state, to: copy)
    try daemon.start()
    try #require(try daemon.ask("account set c") == "OK")
    daemon.end()
    try FileManager.default.removeItem(at: daemon.state)
    try FileManager.default.moveItem(at: copy, to: daemon.state)
    for name in ["witness", "witness.latest"] {
      try FileManager.default.removeItem(at: daemon.state.appending(path: name))
    }
    try daemon.start()
    #expect(try daemon.client().statusValue("store") == "ok")
    epochs.append(try epoch(daemon))
    daemon.end()
    try daemon.start()
    #expect(try epoch(daemon) == epochs.last, "it was written")

    daemon.end()
    try FileManager.default.removeItem(at: daemon.state)
    try daemon.start()
    epochs.append(try epoch(daemon))
    #expect(Set(epochs).count == epochs.count, "\(epochs)")
  }
}
