import Foundation
import TestSupport
import Testing

/// Changes of the machine-id and of the hardware (identityd(8), section "THE MACHINE").
@Suite(.enabled(if: isRoot, "a machine-id of one's own needs a mount"), .tags(.plain)) struct MachineTests {
  private let daemon: DaemonUnderTest
  private let credentials: URL

  init() throws {
    let daemon = try DaemonUnderTest()
    self.daemon = daemon
    credentials = daemon.folder.appending(path: "credentials")
    try FileManager.default.createDirectory(at: credentials, withIntermediateDirectories: true)
  }

  /// Starts the daemon with the given machine-id and hardware UUID.
  ///
  /// - Parameter hardware: nil for hardware that reports no UUID.
  private func start(machine: Int, hardware: Int?, _ settings: String = "", through wrapper: [String] = []) throws {
    let hardware = hardware.map { "0000000\($0)-0000-4000-8000-000000000000" } ?? "unknown"
    try start(machine: machine, hardware: hardware, settings, through: wrapper)
  }

  /// Starts the daemon with the given machine-id and the given text in place of the hardware UUID.
  private func start(
    machine: Int, hardware: String, _ settings: String = "", through wrapper: [String] = []
  ) throws {
    let machine = try daemon.onMachine(withID: "\(machine)\(String(repeating: "0", count: 31))\n")
    let file = credentials.appending(path: "identityd.hardware")
    try Data("\(hardware)\n".utf8).write(to: file)
    try daemon.start(
      through: ["env", "CREDENTIALS_DIRECTORY=\(credentials.path)"] + machine + wrapper,
      configuration: "[Device]\n\(settings)\n")
  }

  private struct Found: Equatable {
    let device: String
    let installation: String
    let vendor: String
  }

  private func identifiers() throws -> Found {
    Found(
      device: try daemon.uuid("get device"), installation: try daemon.uuid("get installation"),
      vendor: try daemon.uuid("get vendor"))
  }

  private func causes(_ level: String) throws -> [String] {
    try daemon.client().ask("history \(level)").dropLast().compactMap { line in
      line.split(separator: " ").first { $0.hasPrefix("cause=") }.map { String($0.dropFirst(6)) }
    }
  }

  @Test func `a start on the same machine and the same hardware changes nothing`() throws {
    try start(machine: 1, hardware: 1)
    let before = try identifiers()
    daemon.end()
    try start(machine: 1, hardware: 1)
    #expect(try identifiers() == before)
    #expect(try !daemon.client().ask("status").contains { $0.hasPrefix("* suspect=") })
  }

  @Test func `row 41b: another machine-id renews all identifiers`() throws {
    try start(machine: 1, hardware: 1)
    let before = try identifiers()
    let last = try daemon.client().ask("status").first { $0.hasPrefix("* last-event=") } ?? ""
    daemon.end()
    try start(machine: 2, hardware: 1)
    let after = try identifiers()
    #expect(after.device != before.device)
    #expect(after.installation != before.installation)
    #expect(after.vendor != before.vendor)
    #expect(try daemon.ask("get device").hasSuffix("origin=machine"))
    for level in ["device", "installation", "vendor"] {
      #expect(try causes(level) == ["first-use", "machine-changed"])
    }
    try daemon.waitForLog("machine-changed")
    let subscriber = try daemon.client()
    let number = last.dropFirst("* last-event=".count)
    #expect(try subscriber.subscribe("device since=\(number)") == ["OK \(number)"])
    let changed = "device changed value=\(after.device) previous=\(before.device) cause=machine-changed time="
    #expect(try subscriber.line()?.contains(changed) == true)
    // The renewal happens once, not at each start.
    daemon.end()
    try start(machine: 2, hardware: 1)
    #expect(try identifiers() == after)
    // The identifiers of the former machine come back with it.
    daemon.end()
    try start(machine: 1, hardware: 1)
    #expect(try identifiers() == before)
    #expect(try daemon.ask("get device").hasSuffix("origin=machine"))
    #expect(try causes("device") == ["first-use", "machine-changed", "machine-returned"])
  }

  @Test func `row 41b: until the renewal is on disk no stored identifier is given out`() throws {
    try start(machine: 1, hardware: 1)
    let before = try identifiers()
    daemon.end()
    try start(machine: 2, hardware: 1, through: StoreFaultTests.fullDisk)
    for request in ["get device", "get installation", "history device", "devices"] {
      #expect(try daemon.ask(request).hasPrefix("ERR no-space "), "\(request)")
    }
    #expect(try daemon.ask("ping") == "OK")
    kill(try #require(Int32(try daemon.client().statusValue("pid") ?? "")), SIGKILL)
    daemon.process.waitUntilExit()
    try start(machine: 2, hardware: 1)
    #expect(try identifiers().device != before.device)
  }

  @Test func `row 41b: OnMachineChange=keep keeps all identifiers, and status says so`() throws {
    try start(machine: 1, hardware: 1)
    let before = try identifiers()
    daemon.end()
    try start(machine: 2, hardware: 1, "OnMachineChange=keep")
    #expect(try identifiers() == before)
    let status = try daemon.client().ask("status")
    #expect(status.contains { $0.hasPrefix("* suspect=\"machine-changed ") })
    try daemon.waitForLog("may be another machine")
  }

  @Test func `row 41c: other hardware keeps all identifiers, and status warns until a renewal`() throws {
    try start(machine: 1, hardware: 1)
    let before = try identifiers()
    daemon.end()
    try start(machine: 1, hardware: 2)
    #expect(try identifiers() == before)
    let subscriber = try daemon.client()
    #expect(try subscriber.subscribe("device since=0") == ["OK 0"])
    _ = try subscriber.line()
    let suspect = "device suspect value=\(before.device) cause=hardware-changed time="
    #expect(try subscriber.line()?.contains(suspect) == true)
    for _ in 0..<2 {
      #expect(try daemon.client().ask("status").contains { $0.hasPrefix("* suspect=\"hardware-changed ") })
      daemon.end()
      try start(machine: 1, hardware: 2)
    }
    #expect(try daemon.ask("renew device").hasSuffix("previous=\(before.device)"))
    #expect(try !daemon.client().ask("status").contains { $0.hasPrefix("* suspect=") })
  }

  @Test func `push tokens and items stay with the original, come back with it, and are deleted by an acknowledgement`()
    throws
  {
    let only = "service=s account=only this-device-only=yes data=eA=="
    let read = "item read service=s account=only"
    try start(machine: 1, hardware: 1)
    for provider in ["apns", "fcm"] { #expect(try daemon.ask("token put \(provider) one").hasPrefix("OK created ")) }
    #expect(try daemon.ask("item put \(only)") == "OK created")
    #expect(try daemon.ask("item put service=s account=other data=eA==") == "OK created")
    let before = try (daemon.ask("token get fcm"), daemon.ask(read))
    #expect(before.0.contains(" state=valid "))
    for _ in 1...2 {
      daemon.end(with: SIGKILL)
      try start(machine: 2, hardware: 1)
      #expect(try daemon.ask("token get fcm").contains(" state=invalid reason=copied "))
      #expect(try daemon.ask("token put fcm one").hasSuffix(" state=invalid reason=copied"))
      #expect(try daemon.ask(read).hasPrefix("ERR unavailable "))
      #expect(try daemon.ask("item read service=s account=other").hasPrefix("OK "))
    }
    daemon.end(with: SIGKILL)
    try start(machine: 1, hardware: 1)
    #expect(try (daemon.ask("token get fcm"), daemon.ask(read)) == before)
    daemon.end()
    try start(machine: 2, hardware: 1)
    #expect(try daemon.ask("token put apns one renewed=yes").hasPrefix("OK replaced "))
    #expect(try daemon.ask("token put apns two").hasPrefix("OK replaced "))
    let rows = try daemon.client().ask("machine acknowledge dry-run=yes")
    #expect(rows.map { $0.split(separator: " ")[1] } == ["token", "item", "2"])
    let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
    let acknowledged = try run([program, "--socket=\(daemon.socket)", "machine", "acknowledge", "--yes"])
    #expect(acknowledged.status == 0, "\(acknowledged)")
    for request in ["token get fcm", read] { #expect(try daemon.ask(request).hasPrefix("ERR not-found ")) }
    #expect(try daemon.ask("token get apns").hasPrefix("OK two "))
    #expect(try daemon.ask("item read service=s account=other").hasPrefix("OK "))
    // Nothing is left to come back.
    daemon.end()
    try start(machine: 1, hardware: 1)
    #expect(try daemon.ask(read).hasPrefix("ERR not-found "))
  }

  @Test func `a machine whose firmware reports a filler has no hardware UUID`() throws {
    let filler = "03000200-0400-0500-0006-000700080009"
    try start(machine: 1, hardware: filler)
    let before = try identifiers()
    for hardware in ["FEFEFEFE-FEFE-FEFE-FEFE-FEFEFEFEFEFE", "00000001-0000-4000-8000-000000000000", filler] {
      daemon.end()
      try start(machine: 1, hardware: hardware)
      #expect(try identifiers() == before)
      #expect(try !daemon.client().ask("status").contains { $0.hasPrefix("* suspect=") }, "\(hardware)")
    }
  }

  @Test func `OnHardwareChange=renew renews all identifiers`() throws {
    try start(machine: 1, hardware: 1)
    let before = try identifiers()
    daemon.end()
    try start(machine: 1, hardware: 2, "OnHardwareChange=renew")
    let after = try identifiers()
    #expect(after.device != before.device && after.installation != before.installation)
    // The other machine may have the identifier that is derived from the machine-id.
    #expect(try daemon.ask("get device").hasSuffix("origin=random"))
    #expect(try causes("device") == ["first-use", "hardware-changed"])
  }

  @Test func `hardware without a serial number does not count as other hardware`() throws {
    try start(machine: 1, hardware: 1)
    let before = try identifiers()
    for hardware in [nil, 1, nil, 1] as [Int?] {
      daemon.end()
      try start(machine: 1, hardware: hardware, "OnHardwareChange=renew")
      #expect(try identifiers() == before)
    }
  }

  @Test func `row 41c: a sealed image starts with new identifiers on any machine`() throws {
    for machine in [1, 2] {
      try start(machine: 1, hardware: 1)
      let before = try identifiers()
      #expect(try daemon.ask("seal") == "OK")
      #expect(try daemon.ask("seal") == "OK")
      #expect(try daemon.ask("get device").hasPrefix("ERR unavailable "))
      #expect(try daemon.ask("get installation").hasPrefix("ERR unavailable "))
      #expect(try daemon.ask("account set alice").hasPrefix("ERR unavailable "))
      daemon.end()
      let image = try FileManager.default.contentsOfDirectory(atPath: daemon.state.path)
      #expect(image.contains("identityd.db"))
      try start(machine: machine, hardware: 1)
      let after = try identifiers()
      #expect(
        after.device != before.device && after.installation != before.installation && after.vendor != before.vendor)
      #expect(try daemon.client().ask("history device").count == 2)
      #expect(try daemon.ask("resolve \(before.device)").hasPrefix("ERR not-found "))
      // No file contains data of the sealed store any more.
      let left = try run(["grep", "--recursive", "--count", "--text", before.installation, daemon.state.path])
      #expect(left.status == 1, "\(left.output)")
      daemon.end()
      try FileManager.default.removeItem(at: daemon.state)
    }
  }

  @Test func `a seal survives a kill`() throws {
    try start(machine: 1, hardware: 1)
    let before = try identifiers()
    #expect(try daemon.ask("seal") == "OK")
    daemon.end(with: SIGKILL)
    try start(machine: 1, hardware: 1)
    #expect(try identifiers().installation != before.installation)
  }
}
