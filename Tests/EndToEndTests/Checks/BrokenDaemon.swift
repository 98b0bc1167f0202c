import Foundation
import TestSupport
import Testing

/// A daemon that is broken in a way that its metrics must show.
enum BrokenDaemon: String, CaseIterable, Sendable {
  /// Not broken, as the comparison.
  case intact
  case stopped
  case readOnlyStore
  case failingDisk
  case damagedStore
  case lostKey
  case faultyManifest
  case copiedMachine
  case greedyClient
  /// The fleet's service has lost its broker.
  case lonelyFleet
  /// The fleet's broker does not keep the record of this device.
  case silentFleet
  /// The fleet's service was live, and has ended.
  case stoppedFleet
  /// The last backup is more than a week old.
  case oldBackup

  /// The samples that show the fault. An intact daemon has none of them.
  var samples: [String] {
    switch self {
    case .intact, .stopped, .oldBackup: []
    case .readOnlyStore:
      [#"identityd_store_condition{condition="read-only"} 1"#, "identityd_store_writable 0"]
    case .failingDisk: [#"identityd_commits_total{outcome="failed"} 1"#]
    case .damagedStore: [#"identityd_store_condition{condition="damaged"} 1"#, "identityd_store_writable 0"]
    case .lostKey: ["identityd_key_available 0"]
    case .faultyManifest: ["identityd_manifest_faults 1"]
    case .copiedMachine: ["identityd_machine_suspect 1"]
    case .lonelyFleet: [#"identityd_fleet_state{state="waiting"} 1"#, #"identityd_fleet_state{state="none"} 0"#]
    case .silentFleet: [#"identityd_fleet_state{state="unpublished"} 1"#]
    case .stoppedFleet: [#"identityd_fleet_state{state="none"} 1"#]
    case .greedyClient:
      [
        #"identityd_connections_refused_total{reason="principal"} 1"#,
        #"identityd_principals_at_bound{bound="connections"} 1"#,
      ]
    }
  }

  /// The alerts of `packaging/examples/monitoring` that fire because of the fault.
  var alerts: [String] {
    switch self {
    case .intact: []
    case .stopped: ["IdentitydMetricsStale"]
    case .readOnlyStore: ["IdentitydStoreNotWritable"]
    case .failingDisk: ["IdentitydCommitsFail"]
    case .damagedStore: ["IdentitydStoreDamaged"]
    case .lostKey: ["IdentitydKeyUnavailable"]
    case .faultyManifest: ["IdentitydManifestFaults"]
    case .copiedMachine: ["IdentitydMachineSuspect"]
    case .greedyClient: ["IdentitydConnectionsRefused", "IdentitydPrincipalAtBound"]
    case .lonelyFleet: ["IdentitydFleetDisconnected"]
    case .silentFleet: ["IdentitydFleetUnpublished"]
    case .stoppedFleet: ["IdentitydFleetStopped"]
    case .oldBackup: ["IdentitydBackupOld"]
    }
  }

  /// Breaks a daemon.
  ///
  /// - Returns: the metrics before and after.
  func record() throws -> (before: String, after: String) {
    let daemon = try DaemonUnderTest()
    let folder = daemon.folder.path
    try FileManager.default.createDirectory(atPath: "\(folder)/apps.d", withIntermediateDirectories: true)
    let settings =
      "[Apps]\nDirectories=\(folder)/apps.d\n[Limits]\nConnectionsPerUser=1\n[Device]\nOnMachineChange=keep\n"
    try daemon.start(through: machine(1, of: daemon), configuration: settings)
    _ = try daemon.uuid("get device")
    #expect(try daemon.ask("item put service=s account=a data=eA==") == "OK created")
    let before = try metrics(of: daemon)
    switch self {
    case .intact: try back(up: daemon)
    case .stopped: daemon.end()
    case .readOnlyStore:
      daemon.end()
      let mount = #"mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@""#
      try daemon.start(through: machine(1, of: daemon) + ["sh", "-c", mount, daemon.state.path])
    case .failingDisk:
      // The next change rewrites the store, and then the disk is in order again.
      try Fault.inject("pwrite64:error=EIO", into: daemon) { () throws in
        #expect(try daemon.ask("get installation").hasPrefix("ERR unknown "))
      }
      try daemon.eventually("get installation")
    case .damagedStore:
      daemon.end()
      try Data(repeating: 0x55, count: 16_384).write(to: daemon.state.appending(path: "identityd.db"))
      try daemon.start(through: machine(1, of: daemon))
    case .lostKey:
      daemon.end()
      try FileManager.default.removeItem(at: daemon.state.appending(path: "master.key"))
      try daemon.start(through: machine(1, of: daemon))
    case .faultyManifest:
      try Data("[App]\nVendor=org.example\nUser=news\nColour=red\n".utf8).write(
        to: URL(filePath: "\(folder)/apps.d/org.example.wrong.app"))
      try daemon.waitForStatus("manifest-faults", "1")
    case .copiedMachine:
      daemon.end()
      try daemon.start(through: machine(2, of: daemon))
    case .greedyClient:
      let first = try PeerConnection(4_711, of: daemon)
      #expect(try first.ask("ping") == ["OK"])
      #expect(try PeerConnection(4_711, of: daemon).line()?.hasPrefix("ERR busy ") == true)
      return (before, try metrics(of: daemon))
    case .lonelyFleet, .silentFleet:
      let state = self == .lonelyFleet ? "waiting" : "unpublished"
      let service = try daemon.client()
      #expect(try service.ask("fleet open run=\(String(repeating: "4", count: 32))").last?.hasPrefix("OK") == true)
      #expect(try service.ask("fleet said state=\(state) said.reason=refused") == ["OK"])
      return (before, try metrics(of: daemon))
    case .stoppedFleet:
      let before: String
      do {
        let service = try daemon.client()
        #expect(try service.ask("fleet open run=\(String(repeating: "4", count: 32))").last?.hasPrefix("OK") == true)
        #expect(try service.ask("fleet said state=live") == ["OK"])
        before = try metrics(of: daemon)
      }
      try daemon.waitForStatus("fleet", "none")
      return (before, try metrics(of: daemon))
    case .oldBackup:
      daemon.end()
      try ClockTests.set(-8 * 86_400, of: daemon)
      try daemon.start(through: machine(1, of: daemon) + ClockTests.wrapper(of: daemon))
      try back(up: daemon)
      daemon.end()
      try daemon.start(through: machine(1, of: daemon))
    }
    // A daemon that has stopped leaves the last file.
    return (before, self == .stopped ? before : try metrics(of: daemon))
  }

  private func metrics(of daemon: DaemonUnderTest) throws -> String {
    let outcome = try identityctl(daemon, "stats", "--prometheus")
    guard outcome.status == 0 else { throw Failure("\(outcome)") }
    return outcome.output
  }

  /// Takes a backup, and waits until the daemon has recorded it.
  private func back(up daemon: DaemonUnderTest) throws {
    _ = try daemon.backup()
    _ = try daemon.waitForBackupTime()
  }

  /// Returns the command that runs a daemon with a machine-id of its own.
  private func machine(_ digit: Int, of daemon: DaemonUnderTest) throws -> [String] {
    try daemon.onMachine(withID: "\(digit)\(String(repeating: "0", count: 31))\n")
  }
}
