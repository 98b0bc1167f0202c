import Foundation
import TestSupport
import Testing

/// A copied disk, in a container of its own: the advice is followed there and at the original, while another member of the
/// account looks on.
extension SystemTests {
  /// A client outside of any unit, so that each call is the same app.
  private static let ask = "systemd-run --quiet --scope identityctl"
  private static let readItem = "\(ask) item read service=s account=a"
  private static let fleetUnit = "identity-fleet.service"

  @Test(arguments: Container.newest)
  func `a copied disk that follows the advice leaves the original alone`(suite: String) async throws {
    let system = try await Container.ready(suite)
    try await startBroker(on: system)
    do {
      try await system.shell(
        """
        dpkg --install \(Container.others)/identity-fleet_*.deb
        systemctl enable --now \(Self.fleetUnit)
        identityctl devices name first
        identityctl account create alice
        \(Self.ask) token put fcm one
        \(Self.ask) item put service=s account=a data=c2VjcmV0 this-device-only=yes
        """)
      try await eventuallyLive(system)
      try await joinSecond(on: system)
      try await copyWithSameMachineID(of: system)
      try await copyWithAnotherMachineID(of: system)
      try await system.shell("\(Self.ask) token delete fcm; \(Self.ask) item delete service=s account=a")
    } catch {
      try await endFleet(on: system)
      throw error
    }
    try await endFleet(on: system)
  }

  /// Boots a copy of the disk, taken while the daemon and the service are down, and starts both again.
  private func withCopy(
    of system: Container, machineID: String?, _ body: (_ copy: Container, _ original: Original) async throws -> Void
  ) async throws {
    let original = try await original(system)
    #expect(original.token.contains(#""state":"valid""#), "\(original)")
    try await system.shell("systemctl stop \(Self.fleetUnit) identityd.socket identityd.service; sync")
    try await system.withCopy(machineID: machineID) { copy in
      try await system.shell("systemctl start identityd.socket \(Self.fleetUnit)")
      try await eventuallyLive(system)
      try await body(copy, original)
    }
  }

  /// All that a copy must not change at the original.
  private struct Original: Equatable {
    let device: String
    let token: String
    let item: String
  }

  private func original(_ system: Container) async throws -> Original {
    Original(
      device: try await system.shell("identityctl get device"),
      token: try await system.shell("\(Self.ask) --json token get fcm"), item: try await system.shell(Self.readItem))
  }

  private func copyWithSameMachineID(of system: Container) async throws {
    try await withCopy(of: system, machineID: nil) { copy, original in
      let advice = "On the copy, run 'identityctl renew device'; on the original, run 'identityctl machine acknowledge'"
      for twin in [system, copy] {
        try await eventually("both tell") {
          try await twin.shell("journalctl --boot --unit=identityd.service --output=cat").contains(advice)
        }
      }
      try await copy.shell("identityctl renew device --yes")
      try await system.shell("identityctl machine acknowledge")
      try await expectApart(system, original, copy)
      // The copy takes what is its own.
      try await expectLeft(on: copy)
      #expect(try await copy.shell("\(Self.ask) token put fcm one renewed=yes").hasPrefix("replaced"))
      try await copy.shell("\(Self.ask) item put service=s account=a data=bmV3")
      #expect(try await self.original(system) == original)
    }
  }

  private func copyWithAnotherMachineID(of system: Container) async throws {
    // Not one on which an earlier test has started the daemon: that would be a way back.
    let machineID = UUID().uuidString.replacing("-", with: "").lowercased()
    try await withCopy(of: system, machineID: machineID) { copy, original in
      let advice = "If the change is intended, run 'identityctl machine acknowledge'"
      try await eventually("the copy tells") {
        try await copy.shell("journalctl --boot --unit=identityd.service --output=cat").contains(advice)
      }
      try await expectLeft(on: copy)
      let found = try await copy.shell("identityctl machine acknowledge dry-run=yes")
      #expect(found.contains("token") && found.contains("item"), "\(found)")
      try await copy.shell("identityctl machine acknowledge --yes")
      for request in ["token get fcm", "item read service=s account=a"] {
        #expect(try await copy.attempt("\(Self.ask) \(request)").status != 0, "\(request)")
      }
      try await expectApart(system, original, copy)
    }
  }

  /// The token and the item of the original are neither used nor lost on the copy.
  private func expectLeft(on copy: Container) async throws {
    let token = try await copy.shell("\(Self.ask) --json token get fcm")
    #expect(token.contains(#""state":"invalid""#) && token.contains(#""reason":"copied""#), "\(token)")
    let item = try await copy.attempt(Self.readItem)
    #expect(item.status != 0 && item.errors.contains("the device that this one may be a copy of"), "\(item)")
  }

  /// Each of the three machines lists all, and finds nothing wrong.
  private func expectApart(_ system: Container, _ original: Original, _ copy: Container) async throws {
    try await copy.shell("identityctl devices name copy")
    for (machine, command) in [
      (system, "identityctl devices"), (copy, "identityctl devices"), (system, second("devices")),
    ] {
      try await eventually("\(command) has all") {
        try await devices(command, on: machine).isSuperset(of: ["first", "second", "copy"])
      }
    }
    #expect(try await self.original(system) == original)
    #expect(try await copy.shell("identityctl get device") != original.device)
    for machine in [system, copy] {
      try await eventually("nothing is wrong") { try await check(machine)["fleet"].result == "ok" }
      #expect(try await !machine.shell("identityctl status").contains("suspect"))
    }
  }
}
