import Foundation
import IdentityCore
import TestSupport
import Testing

/// Cuts the power at any moment of a daemon's work. Acknowledged changes must survive in full, and the store must
/// be intact.
///
/// A daemon is recorded once. The daemon's own code then opens the state that a power cut leaves at each moment.
@Suite(.enabled(if: isRoot, "it takes an admin"), .tags(.trial)) struct PowerCutTests {
  /// Replays a recording with power cuts, and reports the losses.
  ///
  /// - Returns: some of the states after a cut.
  @discardableResult
  private func replay(_ recorded: RecordedDaemon, _ name: String, _ usual: Int, long: Int) throws -> [Replay.Sample] {
    var replay = try Replay(recorded)
    try replay.cut(Trial.rounds(usual, long: long), seed: 20_261_121, samples: Trial.rounds(3, long: 30))
    #expect(replay.losses.isEmpty, "\(replay.losses.count) of \(replay.cuts): \(replay.losses.prefix(5))")
    for sample in replay.samples { try expectServed(sample) }
    try Trial("power cut: \(name)").report(
      tried: replay.states, lost: replay.losses.count,
      "\(replay.moments) moments, \(replay.transactions) transactions, \(replay.cuts) cuts")
    return replay.samples
  }

  /// Expects that the daemon itself serves the state after a cut.
  private func expectServed(_ sample: Replay.Sample) throws {
    let daemon = try DaemonUnderTest(inMemory: true)
    try daemon.fillState(sample.files)
    try daemon.start()
    let client = try daemon.client()
    #expect(try client.statusValue("store") == "ok")
    let last = try #require(Int64(try client.statusValue("last-event") ?? ""))
    #expect(last >= sample.found.registry.lastEvent)
    let device = sample.found.registry[.device]?.value
    if let device { #expect(try daemon.uuid("get device") == "\(device)") }
  }

  /// Makes changes of every kind.
  private func work(_ recorded: RecordedDaemon, _ round: Int, apps: Int = 3) throws {
    for number in 0..<apps {
      let user = 30_000 + 10 * round + number
      #expect(try identityctl(recorded.daemon, "get", "installation", asUser: user).status == 0)
      let app = "app=user:\(user)"
      let item = "service=s account=a\(round)-\(number)"
      let name = "s a\(round)-\(number)"
      try recorded.change("renew installation \(app)", "installation changed value=REPLY \(app)")
      try recorded.change(
        "item put \(item) data=\(pair(1_000 + number)) label=first attr.Kind=x", "item added \(item)",
        secret: (name, pair(1_000 + number)))
      try recorded.change("token put fcm t\(round)-\(number) \(app)", "token created \(app) provider=fcm")
      try recorded.change("version report 1.\(round) \(app)", "version installed \(app) version=1.\(round)")
      try recorded.change(
        "item put \(item) data=\(pair(2_000 + number)) label=second", "item replaced \(item)",
        secret: (name, pair(2_000 + number)))
      if number == 1 {
        try recorded.change("item delete \(item)", "item deleted \(item)")
        try recorded.change("app forget user:\(user)", "app uninstalled \(app)")
      } else {
        try recorded.change(
          "item update \(item) data=\(pair(3_000 + number))", "item updated \(item)",
          secret: (name, pair(3_000 + number)))
        try recorded.change("token put fcm u\(round)-\(number) \(app)", "token replaced \(app) provider=fcm")
      }
    }
    try recorded.change("account set account\(round)", "account changed value=account\(round)")
  }

  // MARK: Changes

  @Test func `row 8: a power cut during changes, checkpoints, a kill or a start loses no acknowledged change`() throws {
    let recorded = try RecordedDaemon()
    try recorded.start()
    try recorded.change("get device", "device created value=REPLY")
    try work(recorded, 1)
    try recorded.end(with: SIGKILL)
    try recorded.start()
    try recorded.change("renew device", "device changed value=REPLY")
    let other = "557e5958-d390-4cbf-b928-2a2b19a1399a"
    try recorded.change("devices put \(other)", "devices added value=\(other)")
    try recorded.change("migrate device \(identifier) commit=yes force=yes", "device changed value=\(identifier)")
    try work(recorded, 2)
    try recorded.end()
    for sample in try replay(recorded, "changes, checkpoints, a kill, a start", 1_500, long: 50_000) {
      let again = try RecordedDaemon(sample.files)
      try again.start()
      try again.end()
      try replay(again, "the start after a cut", 75, long: 500)
    }
  }

  private let identifier = "2ed6657d-e927-468b-95e1-2665a8aea6a2"

  // MARK: Rare operations

  @Test func `row 9: a power cut during a first start loses no acknowledged change`() throws {
    let recorded = try RecordedDaemon()
    try recorded.start()
    try recorded.change("get device", "device created value=REPLY")
    try recorded.end()
    try replay(recorded, "a first start", 500, long: 10_000)
  }

  @Test func `row 9: a power cut during a rewrite after a failed sync loses no acknowledged change`() throws {
    let recorded = try RecordedDaemon()
    try recorded.start(injecting: "fdatasync:error=EIO:when=20..60+20")
    try recorded.change("get device", "device created value=REPLY")
    try work(recorded, 1)
    try work(recorded, 2)
    try recorded.daemon.waitForLog("The store was rewritten", times: 2)
    try recorded.end()
    try replay(recorded, "a rewrite after a failed sync", 600, long: 15_000)
  }

  @Test func `row 9: a power cut during a restore loses no acknowledged change`() throws {
    let source = try DaemonUnderTest().start()
    for number in 0..<10 {
      #expect(try source.ask("item put service=s account=b\(number) data=\(pair(number))") == "OK created")
    }
    let backup = try source.backup()
    let recorded = try RecordedDaemon()
    try recorded.start()
    #expect(try recorded.daemon.restore(backup).last?.hasPrefix("OK") == true)
    try recorded.change("account set alice", "account changed value=alice")
    try recorded.end()
    try replay(recorded, "a restore", 250, long: 5_000)
  }

  @Test func `row 42b: a power cut during a rotation of the master key loses no acknowledged change`() throws {
    let recorded = try RecordedDaemon()
    try recorded.start()
    for number in 0..<4 {
      let item = "service=s account=k\(number)"
      try recorded.change(
        "item put \(item) data=\(pair(number))", "item added \(item)", secret: ("s k\(number)", pair(number)))
      #expect(try recorded.ask("key rotate") == "OK file")
    }
    try recorded.end()
    try replay(recorded, "a change of the master key", 500, long: 10_000)
  }
}
