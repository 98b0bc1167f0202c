import Foundation
import TestSupport
import Testing

/// Starts on a store with so many items that they are proven after the first answers.
@Suite(.tags(.threads), .enabled(if: isRoot, "tracing the daemon needs root")) struct ManyItemsStartTests {
  private static let count = 8_300

  private func filled() throws -> DaemonUnderTest {
    let daemon = try DaemonUnderTest().start(configuration: "[Limits]\nItemsPerApp=20000\n")
    let client = try daemon.client()
    for start in stride(from: 0, to: Self.count, by: 100) {
      try client.send((start..<start + 100).map { "item put service=s account=a\($0) data=eA==\n" }.joined())
      for _ in 0..<100 { #expect(try client.answer() == ["OK created"]) }
    }
    return daemon
  }

  @Test func `everything else is answered before the items are proven, and requests for items wait`() throws {
    let daemon = try filled()
    let device = try daemon.ask("get device")
    daemon.end()
    // The pages of the items take seconds to read.
    try daemon.start(
      through: ["strace", "-f", "-o", "/dev/null", "-e", "trace=pread64", "-e", "inject=pread64:delay_enter=10000"])
    let clients = try (0..<4).map { _ in try daemon.client() }
    let requests = ["item find service=s limit=all", "item read service=s account=a7", "renew device", "token put a b"]
    for (client, request) in zip(clients, requests) { try client.send("\(request)\n") }
    let other = try daemon.client()
    #expect(try other.ask("get device") == [device])
    #expect(try other.statusValue("store") == "checking")
    #expect(try other.statusValue("items") == nil)
    for client in clients { #expect(!client.hasInput) }
    #expect(try clients[0].answer().count == Self.count + 1)
    #expect(try clients[1].answer()[0].hasPrefix("OK data=eA== service=s account=a7 "))
    for client in clients[2...] { #expect(try client.answer()[0].hasPrefix("OK")) }
    #expect(try other.statusValue("store") == "ok")
    #expect(try other.statusValue("items") == "\(Self.count)")
    try daemon.killTraced()
  }

  @Test func `damaged items are named once they are found, and everything else is served`() throws {
    let daemon = try filled()
    let device = try daemon.ask("get device")
    daemon.end()
    try daemon.edit("UPDATE item SET owner = 'thief' WHERE n = 5000")
    try daemon.start()
    #expect(try daemon.ask("item find service=s").hasPrefix("ERR internal the store is damaged: "))
    #expect(try daemon.client().statusValue("store") == "damaged")
    #expect(try daemon.ask("renew device").hasPrefix("ERR internal the store is damaged: "))
    #expect(try daemon.ask("get device") == device)
    #expect(try daemon.ask("item read service=s account=a1").hasPrefix("OK data=eA== "))
    try daemon.waitForLog("a row of item")
  }

  @Test func `a machine with many items is given no identity, though it has never asked for an identifier`() throws {
    let daemon = try filled()
    daemon.end()
    let credentials = daemon.folder.appending(path: "credentials")
    try FileManager.default.createDirectory(at: credentials, withIntermediateDirectories: true)
    let device = "557e5958-d390-4cbf-b928-2a2b19a1399a"
    try Data(device.utf8).write(to: credentials.appending(path: "identityd.device"))
    try daemon.start(through: ["env", "CREDENTIALS_DIRECTORY=\(credentials.path)"])
    #expect(try !daemon.ask("get device").contains(device))
    #expect(try daemon.ask("item read service=s account=a1").hasPrefix("OK data=eA== "))
  }

  @Test func `a start that installs an app reads the items first`() throws {
    let daemon = try filled()
    let apps = daemon.folder.appending(path: "apps.d")
    try FileManager.default.createDirectory(at: apps, withIntermediateDirectories: true)
    try daemon.configure("[Limits]\nItemsPerApp=20000\n[Apps]\nDirectories=\(apps.path)\n")
    daemon.end()
    try Data("[App]\nUser=nobody\n".utf8).write(to: apps.appending(path: "org.example.notes.app"))
    try daemon.start()
    let client = try daemon.client()
    #expect(try client.statusValue("store") == "ok")
    #expect(try client.statusValue("items") == "\(Self.count)")
    #expect(try client.statusValue("manifests") == "1")
  }
}
