import Foundation
import IdentityCore
import TestSupport
import Testing

/// The cost of a request in units that can be counted, and are the same on every run and every machine.
@Suite(.tags(.plain)) struct RequestCostTests {
  private static let valgrind = "/usr/bin/valgrind"
  private static let canCount =
    DaemonUnderTest.released != DaemonUnderTest.binaries && FileManager.default.isExecutableFile(atPath: valgrind)

  @Test(.enabled(if: isRoot, "tracing the daemon needs root"))
  func `a request on an open connection costs three system calls and no others`() throws {
    let daemon = try DaemonUnderTest(of: DaemonUnderTest.released)
    let trace = daemon.folder.appending(path: "trace")
    try daemon.start(through: ["strace", "-D", "-o", trace.path])
    let client = try daemon.client()
    #expect(try client.ask("get device").last?.hasPrefix("OK ") == true)
    // Waits for the delayed work of a start and of a new connection, so that it comes before the marks.
    try daemon.waitForRelease(in: trace)
    usleep(300_000)
    // On a busy machine, delayed work can still come later. It comes once, and each request would cost its calls in
    // every round.
    let rounds = 1...4
    for round in rounds {
      #expect(try client.ask("check first\(round)") == ["OK invalid"])
      for _ in 0..<100 { #expect(try client.ask("get device").count == 1) }
      #expect(try client.ask("check last\(round)") == ["OK invalid"])
    }
    daemon.end()
    let calls = try String(contentsOf: trace, encoding: .utf8).split(separator: "\n").map(String.init)
    let found = try rounds.map { round in
      let first = try #require(calls.firstIndex { $0.contains("check first\(round)") })
      let last = try #require(calls.firstIndex { $0.contains("check last\(round)") })
      // From the answer to the first mark up to the wait for the last one.
      return calls[(first + 1)..<last].map { String($0.prefix { $0 != "(" }) }
    }
    let request = ["sendto", "epoll_wait", "recvmsg"]
    let expected = Array(repeating: request, count: 101).flatMap(\.self).dropLast()
    #expect(found.contains(Array(expected)), "\(found)")
  }

  @Test(
    .enabled(if: DaemonUnderTest.released != DaemonUnderTest.binaries, "it inspects the release build"),
    arguments: ["identityd", "identity-fleet"])
  func `a service contains no engine of regular expressions`(name: String) throws {
    let symbols = try run(["nm", DaemonUnderTest.released.appending(path: name).path]).output
    #expect(symbols.contains("IdentityWire") && !symbols.contains("_StringProcessing"))
  }

  /// Checks a ceiling, and shows the real figure if that is higher.
  @Test(
    .enabled(if: canCount, "it counts the instructions of a release build, in valgrind"),
    arguments: [(depth: 64, most: 400), (depth: 1, most: 1_000)])
  func `the instructions of a pipelined or single query stay below their ceiling`(depth: Int, most: Double) throws {
    let each = try undisturbed(within: 100...most) {
      let whole = try added(of: [3_200, 9_600].map { $0 / depth }) { daemon, batches in
        let client = try daemon.client()
        for _ in 0..<batches {
          try client.send(String(repeating: "get device\n", count: depth))
          for _ in 0..<depth { #expect(try client.answer().last?.hasPrefix("OK ") == true) }
        }
      }
      return whole / Double(depth)
    }
    #expect(each > 100 && each <= most, "\(each) instructions a question")
  }

  /// The client pauses before each of its steps. So the daemon waits for each event of a connection alone, as it does on an
  /// idle machine, and the load of the machine can merge events, but not add any.
  @Test(.enabled(if: canCount, "it counts the instructions of a release build, in valgrind"))
  func `the instructions of a connection with one query stay below their ceiling`() throws {
    let pause = UInt32(1_000 * (Bound.establishMilliseconds + 10))
    let each = try added(of: [50, 250]) { daemon, connections in
      for _ in 0..<connections {
        let client = try daemon.client()
        usleep(pause)
        #expect(try client.ask("get device").last?.hasPrefix("OK ") == true)
      }
    }
    // The client is an admin, whose user namespace is examined at each connection.
    #expect(each > 1_000 && each <= 23_000, "\(each) instructions a connection")
  }

  @Test(
    .enabled(if: canCount, "it counts the instructions of a release build, in valgrind"),
    arguments: [(depth: 64, most: 46_000), (depth: 1, most: 167_000)])
  func `the instructions of a change, batched or alone, stay below their ceiling`(depth: Int, most: Double) throws {
    let whole = try added(of: [320, 960].map { $0 / depth }) { daemon, batches in
      let client = try daemon.client()
      for batch in 0..<batches {
        try client.send((0..<depth).map { "token put fcm token-\(batch)-\($0)\n" }.joined())
        for _ in 0..<depth { #expect(try client.answer().last?.hasPrefix("OK ") == true) }
      }
    }
    let each = whole / Double(depth)
    #expect(each > 10_000 && each <= most, "\(each) instructions a change")
  }

  @Test(
    .enabled(if: canCount && isRoot, "it counts the instructions of a release build, in valgrind, and lists devices"))
  func `the instructions for each device of an ended account stay below their ceiling`() throws {
    let each = try added(of: [500, 1_500]) { daemon, devices in
      let client = try daemon.client()
      #expect(try client.ask("account set alice") == ["OK"])
      let values = (1...devices).map { "00000000-0000-4000-8000-\(String($0 + 0x1000_0000_0000, radix: 16))" }
      try client.send(values.map { "devices put \($0)\n" }.joined())
      for _ in values { #expect(try client.answer() == ["OK"]) }
      #expect(try client.ask("account clear") == ["OK"])
    }
    // The number includes adding the device to the list.
    #expect(each > 10_000 && each <= 150_000, "\(each) instructions a device")
  }

  @Test(.enabled(if: canCount, "it counts the instructions of a release build, in valgrind"))
  func `the instructions for an event and an idle subscriber stay below their ceiling`() throws {
    let subscribers = 400
    let whole = try added(of: [5, 25]) { daemon, changes in
      let waiting = try (0..<subscribers).map { _ in try daemon.client() }
      for client in waiting { #expect(try client.subscribe("token").last?.hasPrefix("OK ") == true) }
      let client = try daemon.client()
      for change in 0..<changes {
        #expect(try client.ask("token put fcm token-\(change)").last?.hasPrefix("OK ") == true)
        for client in waiting { #expect(try client.answer().last?.hasPrefix("EVENT ") == true) }
      }
    }
    // The number includes the change itself, divided by the number of subscribers.
    let each = whole / Double(subscribers)
    #expect(each > 100 && each <= 2_000, "\(each) instructions a subscriber and event")
  }

  @Test(
    .enabled(if: canCount, "it counts the instructions of a release build, in valgrind"),
    arguments: [[50, 150], [400, 600]])
  func `the instructions for a removed app with an item do not grow with the number of apps`(apps: [Int]) throws {
    let store = { (daemon: DaemonUnderTest, apps: Int) in
      try daemon.storeApps(apps, suspended: Timestamp(milliseconds: 1))
    }
    let each = try added(of: apps, preparing: store) { daemon, apps in
      let client = try daemon.client()
      #expect(try client.statusValue("suspended-apps") == "\(apps)")
      try client.send((1...apps).map { "app forget org.example.a\($0)\n" }.joined())
      for _ in 1...apps { #expect(try client.answer() == ["OK"]) }
      #expect(try client.ask("app list") == ["OK 0"])
    }
    // The number includes the request that removes the app, of about 15,000 instructions.
    #expect(each > 50_000 && each <= 315_000, "\(each) instructions an app")
  }

  /// The clock is read after 16 items, so the longest piece of a search takes 16 times as many instructions as the dearest
  /// item: less than 3 million, which is a millisecond.
  @Test(.enabled(if: canCount, "it counts the instructions of a release build, in valgrind"))
  func `the instructions of a search for each item stay below their ceiling`() throws {
    let items = 1_000
    let names = (10..<74).map { "attr.a\($0)=1" }
    let search = "item find \((names.dropFirst(2) + ["attr.z=1"]).joined(separator: " "))"
    let whole = try added(
      of: [2, 8],
      preparing: { daemon, _ in
        let client = try daemon.start().client()
        for number in 0..<items {
          let item = "item put service=q account=a\(number) data=QUFB \(names.joined(separator: " "))"
          #expect(try client.ask(item) == ["OK created"])
        }
        #expect(daemon.end() == 0)
      },
      { daemon, searches in
        let client = try daemon.client()
        for _ in 0..<searches { #expect(try client.ask(search).last?.hasPrefix("ERR not-found ") == true) }
      })
    let each = whole / Double(items)
    #expect(each > 1_000 && each <= 40_000, "\(each) instructions an item")
  }

  @Test(.enabled(if: canCount, "it counts the instructions of a release build, in valgrind"))
  func `the instructions of a start for a stored app stay below their ceiling`() throws {
    let each = try added(of: [500, 1_500], preparing: { try $0.storeUsers($1) }) { daemon, apps in
      let installations = try daemon.client().statusValue("installations")
      #expect(installations == "\(apps)")
    }
    // The number includes the app's identifier and its two events, and the stop.
    #expect(each > 10_000 && each <= 43_600, "\(each) instructions an app")
  }

  /// Counts up to three times, until the count is within the bounds. On a busy machine the daemon can read the requests of
  /// one of the two runs in more pieces.
  private func undisturbed(within bounds: ClosedRange<Double>, _ count: () throws -> Double) throws -> Double {
    for _ in 1...2 {
      let each = try count()
      if bounds.contains(each) { return each }
    }
    return try count()
  }

  /// Returns the instructions of a daemon for one more piece of work, from two amounts of work.
  ///
  /// The clock of the daemon is slowed as valgrind slows the daemon, so that a turn ends after as much work as without
  /// valgrind.
  private func added(
    of amounts: [Int], preparing prepare: (DaemonUnderTest, Int) throws -> Void = { _, _ in },
    _ body: (DaemonUnderTest, Int) throws -> Void
  ) throws -> Double {
    let programs = FileManager.default.temporaryDirectory.appending(path: "identityd-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: programs, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(at: programs) }
    // Debian's valgrind cannot read all of the debug information.
    let copy = programs.appending(path: "identityd").path
    let program = DaemonUnderTest.released.appending(path: "identityd").path
    #expect(try run(["strip", "--strip-debug", "-o", copy, program]).status == 0)
    let clock = programs.appending(path: "slow-clock.so")
    try PreloadedLibrary.compile("slow-clock", to: clock)
    let counts = try amounts.map { amount in
      let daemon = try DaemonUnderTest(of: programs)
      let output = daemon.folder.appending(path: "callgrind").path
      try prepare(daemon, amount)
      try daemon.start(
        through: [
          "env", "LD_PRELOAD=\(clock.path)", Self.valgrind, "--tool=callgrind", "--callgrind-out-file=\(output)",
        ])
      try body(daemon, amount)
      // The delayed work of a start comes once. Without a wait, it would come in the longer of the two runs alone.
      usleep(UInt32(2_000 * Bound.releaseMemoryMilliseconds))
      #expect(daemon.end() == 0)
      let text = try String(contentsOfFile: output, encoding: .utf8)
      let totals = try #require(text.split(separator: "\n").last { $0.hasPrefix("totals:") })
      return try #require(Double(totals.dropFirst("totals: ".count)))
    }
    return (counts[1] - counts[0]) / Double(amounts[1] - amounts[0])
  }
}
