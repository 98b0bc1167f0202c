import Foundation
import LinuxSystem

/// A device: a real identityd with a real identity-fleet.
final class FleetDevice {
  let daemon: MeasuredServer
  let service: MeasuredServer

  /// Starts a device with the ports of its brokers.
  init(_ name: String, _ ports: [UInt16], _ guardian: Guardian) throws {
    let daemon = try MeasuredServer.identityd(guardian: guardian)
    let program = try MeasuredServer.besideThis("identity-fleet")
    let brokers = ports.map { "Broker=mqtt://127.0.0.1:\($0)\n" }.joined()
    service = try MeasuredServer(
      "identity-fleet", guardian: guardian, greeting: Question("fleet status\n", reply: []),
      configuration: { _ in "[Fleet]\n\(brokers)Spread=0\n" }
    ) { folder in
      [
        program, "--daemon", daemon.socket, "--socket", MeasuredServer.socket(in: folder), "--config",
        MeasuredServer.configurationFile(in: folder).path,
      ]
    }
    self.daemon = daemon
    try daemon.start()
    // All devices here would have the identifier of the machine.
    try daemon.ask("renew device")
    try daemon.ask("devices name \(name)")
    try service.start()
  }

  /// Starts devices in one account.
  static func account(_ count: Int, _ ports: [UInt16], _ guardian: Guardian) throws -> [FleetDevice] {
    let devices = try (0..<count).map { try FleetDevice("device\($0)", ports, guardian) }
    try devices[0].service.ask("account create alice")
    for device in devices.dropFirst() { try device.join(devices[0].invite()) }
    for device in devices {
      try wait("all devices") { try device.daemon.ask("devices").hasSuffix("OK \(count)\n") }
      try device.waitUntilLive()
    }
    return devices
  }

  /// Kills both programs.
  func end() {
    service.end()
    daemon.end()
  }

  /// Returns the file of a new invitation.
  func invite() throws -> URL {
    let file = service.folder.appending(path: Foundation.UUID().uuidString)
    try control("invite", "--no-passphrase", "--file=\(file.path)")
    return file
  }

  /// Joins the account of an invitation.
  func join(_ invitation: URL) throws { try control("join", "--file=\(invitation.path)") }

  private func control(_ words: String...) throws {
    let program = try MeasuredServer.besideThis("identityctl")
    let sockets = ["IDENTITYD_SOCKET=\(daemon.socket)", "IDENTITY_FLEET_SOCKET=\(service.socket)"]
    try Placement.run(["/usr/bin/env"] + sockets + [program, "account"] + words)
  }

  /// Returns whether the service has read its account at the broker.
  func isLive() throws -> Bool { try service.ask("fleet status").contains("state=live") }

  /// Waits until the service has read its account at the broker.
  func waitUntilLive() throws { try Self.wait("the state live", isLive) }

  private static func wait(_ what: String, _ condition: () throws -> Bool) throws {
    let started = nanoseconds()
    while try !condition() {
      guard nanoseconds() - started < 180_000_000_000 else { throw BenchError("\(what) not within three minutes") }
      usleep(20_000)
    }
  }
}
