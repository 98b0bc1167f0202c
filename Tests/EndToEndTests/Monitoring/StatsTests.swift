import Foundation
import IdentityWire
import LinuxSystem
import TestSupport
import Testing

/// `stats`, compared with the requests that were made.
struct StatsTests {
  /// Returns the samples of a daemon, parsed as a client parses them.
  private func samples(_ client: Client) throws -> [MetricSample] {
    let lines = try client.ask("stats")
    #expect(lines.last == "OK")
    return try lines.dropLast().map { line in
      guard case .row(let row)? = ReplyLine(Array(line.utf8)), let sample = MetricSample(row) else {
        throw Failure("this is no sample: \(line)")
      }
      return sample
    }
  }

  private func number(_ samples: [MetricSample], _ metric: Metric, _ labels: String...) -> Double? {
    let found = samples.first { $0.metric == metric && $0.labels.map { "\($0.value)" } == labels }
    return switch found?.value {
    case .number(let number): Double(number)
    case .histogram(let count, _, _): Double(count)
    case nil: nil
    }
  }

  @Test func `stats shows every metric of the table, in the table's order`() throws {
    let daemon = try DaemonUnderTest().start()
    let client = try daemon.client()
    _ = try client.ask("get device")
    if isRoot {
      _ = try daemon.backup()
      _ = try daemon.waitForBackupTime()
    }
    let samples = try samples(client)
    let places = try samples.map { sample in try #require(Metric.all.firstIndex(of: sample.metric)) }
    #expect(places == places.sorted())
    // The fleet's service was never connected.
    let missing = [Metric.fleetContact] + (isRoot ? [] : [.lastBackup])
    #expect(Set(places) == Set(Metric.all.indices.filter { !missing.contains(Metric.all[$0]) }))
  }

  @Test func `requests are counted by verb and outcome, for answers and for errors`() throws {
    let daemon = try DaemonUnderTest().start()
    let client = try daemon.client()
    for _ in 0..<10 { _ = try client.ask("get device") }
    for line in ["frob", "check", "get key \"", "item read service=a account=b", "item read service=a account=b"] {
      #expect(try client.ask(line)[0].hasPrefix("ERR"))
    }
    let samples = try samples(client)
    #expect(number(samples, .requests, "get device", "ok") == 10)
    #expect(number(samples, .requests, "check", "bad-argument") == 1)
    #expect(number(samples, .requests, "none", "unknown-verb") == 1)
    #expect(number(samples, .requests, "none", "syntax") == 1)
    #expect(number(samples, .requests, "item read", "not-found") == 2)
    #expect(number(samples, .requests, "item read", "ok") == nil)
  }

  @Test func `a change is counted as a job, a commit and an event`() throws {
    let daemon = try DaemonUnderTest().start()
    let client = try daemon.client()
    let before = try samples(client)
    for number in 0..<3 { #expect(try client.ask("item add service=s account=\(number) data=AAAA") == ["OK"]) }
    let after = try samples(client)
    func grown(_ metric: Metric, _ labels: String) -> Double {
      let labels = labels.isEmpty ? [] : [labels]
      func value(_ samples: [MetricSample]) -> Double {
        guard let label = labels.first else { return number(samples, metric) ?? 0 }
        return number(samples, metric, label) ?? 0
      }
      return value(after) - value(before)
    }
    #expect(grown(.jobs, "items") == 3)
    #expect(grown(.commits, "ok") == 3)
    #expect(grown(.commits, "failed") == 0)
    #expect(grown(.commitSeconds, "") == 3)
    #expect(grown(.commitChanges, "") == 3)
    #expect(grown(.events, "") >= 3)
    #expect(number(after, .storeBytes) ?? 0 > 0)
    #expect(number(after, .storeWritable) == 1)
    #expect(number(after, .jobsUnderWay) == 0)
  }

  @Test func `connections are counted by state, and subscribers with their lag`() throws {
    let daemon = try DaemonUnderTest().start()
    let client = try daemon.client()
    let others = try (0..<3).map { _ in try daemon.client() }
    for other in others { #expect(try other.ask("ping") == ["OK"]) }
    #expect(try others[0].subscribe()[0].hasPrefix("OK"))
    let samples = try samples(client)
    // The connection that waited for the start may still be counted.
    #expect(number(samples, .connections, "idle") ?? 0 >= 4)
    #expect(number(samples, .accepted) ?? 0 >= 5)
    for reason in ["connections", "principal", "resources", "denied", "unattested"] {
      #expect(number(samples, .refused, reason) == 0)
    }
    #expect(number(samples, .subscribers) == 1)
    #expect(number(samples, .subscriberLag) == 0)
    #expect(number(samples, .logDropped) == 0)
  }

  @Test(.enabled(if: isRoot, "opening the fleet takes an admin"))
  func `the state of the fleet's service and its last contact are told`() throws {
    let daemon = try DaemonUnderTest().start()
    let (client, service) = (try daemon.client(), try daemon.client())
    func states(_ samples: [MetricSample]) -> [String] {
      FleetState.allCases.map(\.rawValue).filter { number(samples, .fleetState, $0) == 1 }
    }
    func contact(_ samples: [MetricSample]) -> Double? { number(samples, .fleetContact) }
    #expect(try states(samples(client)) == ["none"])
    #expect(try service.ask("fleet open run=\(String(repeating: "4", count: 32))").last?.hasPrefix("OK ") == true)
    #expect(try states(samples(client)) == ["open"])
    #expect(try service.ask("fleet said state=connecting") == ["OK"])
    #expect(try contact(samples(client)) == nil)
    let before = Date().timeIntervalSince1970.rounded(.down)
    #expect(try service.ask("fleet said state=live") == ["OK"])
    let first = try #require(try contact(samples(client)))
    #expect(first >= before && first <= Date().timeIntervalSince1970)
    usleep(20_000)
    let second = try #require(try contact(samples(client)))
    #expect(second > first, "a connection that lasts is contact")
    #expect(try service.ask("fleet said state=waiting") == ["OK"])
    let third = try samples(client)
    #expect(try states(third) == ["waiting"] && #require(contact(third)) >= second)
    usleep(20_000)
    let last = try #require(contact(third))
    #expect(try contact(samples(client)) == last)
    // The words of another program's service.
    #expect(try service.ask("fleet said state=dreaming") == ["OK"])
    #expect(try states(samples(client)) == [] && contact(samples(client)) == last)
    // A service that ends while it is connected.
    #expect(try service.ask("fleet said state=reading") == ["OK"])
    #expect(try service.ask("quit") == ["OK"])
    try daemon.waitForStatus("fleet", "none")
    let end = try samples(client)
    #expect(try states(end) == ["none"] && #require(contact(end)) > last)
  }

  @Test func `one turn in 64 is measured`() throws {
    let daemon = try DaemonUnderTest().start()
    let client = try daemon.client()
    let before = try #require(number(samples(client), .turns))
    for _ in 0..<640 { #expect(try client.ask("ping") == ["OK"]) }
    let after = try #require(number(samples(client), .turns))
    #expect(after - before >= 9)
  }

  @Test(.enabled(if: isRoot, "acting as another user needs root"))
  func `an admin sees the statistics of all apps, and another user only its own app's`() throws {
    let daemon = try DaemonUnderTest().start()
    let other = try OtherUser(1_234, of: daemon)
    for _ in 0..<4 { #expect(try other.ask("ping") == "OK\n") }
    let own = try daemon.client()
    let all = try own.ask("stats apps=yes")
    #expect(all.contains("* user:1234 connections=1 subscribers=0 requests=4"), "\(all)")
    #expect(all.last == "OK \(all.count - 1)")
    #expect(all.count > 2)
    #expect(try other.ask("stats apps=yes") == "* user:1234 connections=1 subscribers=0 requests=5\nOK 1\n")
    #expect(try other.ask("ping") == "OK\n")
    try other.end()
    // The requests of an app stay counted after its connections have closed.
    let deadline = Clock.monotonicMicroseconds + UInt64(patience) * 1_000_000
    var answer = ""
    while !answer.contains("connections=0"), Clock.monotonicMicroseconds < deadline {
      answer = try own.ask("stats apps=yes").first { $0.contains("user:1234") } ?? ""
    }
    #expect(answer == "* user:1234 connections=0 subscribers=0 requests=6")
  }
}
