import Foundation
import TestSupport
import Testing

/// A client that sends one request after another on its own connection until it is stopped.
final class Load: @unchecked Sendable {
  // Sendable: only the thread uses the client, and the lock guards all mutable state.
  private let client: Client
  private let request: @Sendable (Int) -> String
  private let isRight: @Sendable (Int, [String]) -> Bool
  private let lock = NSLock()
  private let done = DispatchSemaphore(value: 0)
  private var stops = false
  private var count = 0
  private var wrong: [String] = []

  /// Starts the thread that sends the requests.
  init(
    _ client: Client, _ request: @escaping @Sendable (Int) -> String,
    isRight: @escaping @Sendable (Int, [String]) -> Bool
  ) {
    self.client = client
    self.request = request
    self.isRight = isRight
    Thread.detachNewThread { [self] in run() }
  }

  private func run() {
    var number = 0
    while !lock.withLock({ stops }) {
      let answer = (try? client.ask(request(number))) ?? ["no answer"]
      let fits = isRight(number, answer)
      number += 1
      lock.withLock {
        count += 1
        if !fits { wrong.append("\(answer)") }
      }
    }
    done.signal()
  }

  /// The number of answers so far.
  var answers: Int { lock.withLock { count } }

  /// Stops the requests and waits for the last answer.
  ///
  /// - Returns: the wrong answers.
  func stop() -> [String] {
    lock.withLock { stops = true }
    done.wait()
    return lock.withLock { wrong }
  }
}

extension DaemonUnderTest {
  private var credentials: URL { folder.appending(path: "credentials") }

  /// Sets a credential from the next start on, as the service manager provides it. Nil removes the credential.
  func credential(_ name: String, _ text: String?) throws {
    try FileManager.default.createDirectory(at: credentials, withIntermediateDirectories: true)
    let file = credentials.appending(path: name)
    try? FileManager.default.removeItem(at: file)
    if let text { try Data(text.utf8).write(to: file) }
  }

  /// Starts the daemon with the credentials.
  @discardableResult
  func startWithCredentials(configuration: String? = nil) throws -> DaemonUnderTest {
    try start(through: ["env", "CREDENTIALS_DIRECTORY=\(credentials.path)"], configuration: configuration)
  }

  /// Starts the daemon with the credentials, among them a hardware UUID made from a number.
  @discardableResult
  func start(hardware: Int) throws -> DaemonUnderTest {
    try credential("identityd.hardware", "0000000\(hardware)-0000-4000-8000-000000000000\n")
    return try startWithCredentials()
  }

  /// Stops the daemon and starts it with the current credentials.
  func restart() throws {
    end()
    try startWithCredentials()
  }

  var masterKey: URL { state.appending(path: "master.key") }

  /// The names of the master key files in the state directory.
  var masterKeys: [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: state.path)) ?? []).filter { $0.hasPrefix("master.key") }
      .sorted()
  }
}

/// The master key: its sources, a missing key, and rotation.
@Suite(.enabled(if: isRoot, "it takes an admin"), .serialized, .tags(.threads)) struct KeyTests {
  private static let credential = "identityd.key"
  private static let previous = "identityd.key.previous"

  private func put(_ numbers: ClosedRange<Int>, _ daemon: DaemonUnderTest) throws {
    for number in numbers {
      let said = "data=\(pair(number)) label=\(pair(number))"
      try #require(try daemon.ask("item put service=s account=a\(number) \(said)").hasPrefix("OK "))
    }
  }

  private func expectItems(_ numbers: ClosedRange<Int>, _ daemon: DaemonUnderTest) throws {
    for number in numbers {
      #expect(try readPair(try daemon.ask("item read service=s account=a\(number)")) == pair(number))
    }
    #expect(try daemon.ask("item find") == "OK \(numbers.count)")
  }

  private func expectLocked(_ daemon: DaemonUnderTest) throws {
    #expect(try daemon.client().statusValue("master-key") == "unavailable")
    #expect(try daemon.ask("item find").hasPrefix("ERR unavailable "))
  }

  @Test func `status names the source of the key and counts the items and their bytes`() throws {
    let daemon = try DaemonUnderTest().start()
    let client = try daemon.client()
    #expect(try client.ask("status").contains("* master-key=file"))
    #expect(try client.ask("status").contains("* items=0"))
    #expect(try client.ask("status").contains("* item-bytes=0"))
    #expect(try client.ask("item put service=ss account=aaa data=AAAA label=llll attr.nnnnn=vvvvvv") == ["OK created"])
    #expect(try client.statusValue("items") == "1")
    let own = "user:\(getuid())".utf8.count
    // The lengths of group, secret, service, account, label, and of the attribute's name and value.
    #expect(try client.statusValue("item-bytes") == "\([own, 3, 2, 3, 4, 5, 6].reduce(0, +))")
    #expect(try client.ask("item delete service=ss") == ["OK 1"])
    #expect(try client.ask("status").contains("* items=0"))
    #expect(try client.ask("status").contains("* item-bytes=0"))
    #expect(try client.statusValue("master-key-reason") == nil)
  }

  // MARK: Missing key

  private static let missing = ["gone", "another's", "cut", "cut short", "empty", "too long", "a folder"]

  /// Returns a stopped daemon with items whose master key was removed or replaced, and the former content of the
  /// key file.
  private func locked(_ how: String) throws -> (daemon: DaemonUnderTest, key: Data) {
    let daemon = try DaemonUnderTest().start()
    try put(1...2, daemon)
    try #require(try daemon.ask("item put service=s account=i data=eA== lifetime=installation") == "OK created")
    daemon.end()
    let key = try Data(contentsOf: daemon.masterKey)
    try FileManager.default.removeItem(at: daemon.masterKey)
    switch how {
    case "another's": try Data("\(String(repeating: "5a", count: 32))\n".utf8).write(to: daemon.masterKey)
    case "cut": try key.prefix(40).write(to: daemon.masterKey)
    case "cut short": try key.prefix(31).write(to: daemon.masterKey)
    case "empty": try Data().write(to: daemon.masterKey)
    case "too long": try (key + Data(repeating: 0x30, count: 5_000)).write(to: daemon.masterKey)
    case "a folder": try FileManager.default.createDirectory(at: daemon.masterKey, withIntermediateDirectories: false)
    default: break
    }
    return (daemon, key)
  }

  @Test(arguments: missing)
  func `row 42: without its key only items are unavailable, and with the key all are back`(how: String) throws {
    let (daemon, key) = try locked(how)
    let placed = try? Data(contentsOf: daemon.masterKey)
    for signal in [SIGTERM, SIGKILL] {
      try daemon.start()
      let client = try daemon.client()
      #expect(try client.subscribe()[0].hasPrefix("OK "))
      for request in [
        "item add service=s account=n data=eA==", "item put service=s account=a1 data=eA==",
        "item read service=s account=a1", "item read service=s account=none", "item find", "item find group=*",
        "item update service=s account=a1 label=x", "item delete service=s", "key rotate",
        "backup key=\(Data(1...32).base64EncodedString())", "migrate installation item=a1 service=s",
      ] {
        #expect(try daemon.ask(request).hasPrefix("ERR unavailable "), "\(request)")
      }
      #expect(try daemon.ask("get device").hasPrefix("OK "))
      #expect(try daemon.ask("get installation").hasPrefix("OK "))
      #expect(try daemon.ask("get vendor").hasPrefix("OK "))
      #expect(try daemon.ask(signal == SIGTERM ? "account set alice" : "account set bob") == "OK")
      var told = try client.line() ?? ""
      while told.hasPrefix("EVENT "), !told.contains(" account changed ") { told = try client.line() ?? "" }
      #expect(told.contains(" account changed "))
      let status = try daemon.client().ask("status")
      #expect(
        status.contains("* master-key=unavailable") && status.contains("* store=ok") && status.contains("* items=3"))
      #expect(status.contains { $0.hasPrefix("* master-key-reason=") && $0.contains("from master.key") }, "\(status)")
      daemon.end(with: signal)
      #expect((try? Data(contentsOf: daemon.masterKey)) == placed)
    }
    try? FileManager.default.removeItem(at: daemon.masterKey)
    try key.write(to: daemon.masterKey)
    try daemon.start()
    #expect(try daemon.client().statusValue("master-key") == "file")
    for number in 1...2 {
      #expect(try readPair(try daemon.ask("item read service=s account=a\(number)")) == pair(number))
    }
    #expect(try daemon.ask("item find") == "OK 3")
    #expect(daemon.masterKeys == ["master.key"])
  }

  @Test(arguments: missing)
  func `a missing key is logged as an error once per start`(how: String) throws {
    let (daemon, _) = try locked(how)
    try daemon.start()
    for _ in 0..<5 { #expect(try daemon.ask("item find").hasPrefix("ERR unavailable ")) }
    daemon.end()
    let errors = daemon.log.split(separator: "\n").filter { $0.hasPrefix("identityd: err: ") }
    #expect(errors.count == 1 && errors[0].contains("Items are unavailable: "), "\(errors)")
  }

  @Test func `app forget deletes the app's items even without the key`() throws {
    let (daemon, key) = try locked("gone")
    try daemon.start()
    #expect(try daemon.ask("app forget user:\(getuid())") == "OK")
    #expect(try daemon.client().statusValue("items") == "2")
    daemon.end(with: SIGKILL)
    try key.write(to: daemon.masterKey)
    try daemon.start()
    try expectItems(1...2, daemon)
  }

  // MARK: Credentials

  @Test(arguments: [0, 31, 32, 33, 4_096])
  func `a credential of at least 32 bytes is the key from the first start on`(length: Int) throws {
    let daemon = try DaemonUnderTest()
    try daemon.credential(Self.credential, String(repeating: "k", count: length))
    try daemon.startWithCredentials()
    let isKey = length >= 32
    #expect(try daemon.client().statusValue("master-key") == (isKey ? "credential" : "file"))
    try put(1...2, daemon)
    #expect(daemon.masterKeys == (isKey ? [] : ["master.key"]))
    try daemon.restart()
    try expectItems(1...2, daemon)
    try daemon.credential(Self.credential, nil)
    try daemon.restart()
    if !isKey { return try expectItems(1...2, daemon) }
    try expectLocked(daemon)
    let reason = try daemon.client().statusValue("master-key-reason") ?? ""
    #expect(reason.contains("from the credential identityd.key"), "\(reason)")
    #expect(daemon.masterKeys == [])
    try daemon.credential(Self.credential, String(repeating: "k", count: length))
    try daemon.restart()
    try expectItems(1...2, daemon)
  }

  @Test func `key rotate moves from the key file to a credential`() throws {
    let daemon = try DaemonUnderTest().start()
    try put(1...3, daemon)
    let file = try Data(contentsOf: daemon.masterKey)
    try daemon.credential(Self.credential, String(repeating: "c", count: 40))
    try daemon.restart()
    // Without `key rotate`, the source of the key does not change.
    #expect(try daemon.client().statusValue("master-key") == "file")
    try expectItems(1...3, daemon)
    #expect(try daemon.ask("key rotate") == "OK credential")
    #expect(try daemon.client().statusValue("master-key") == "credential")
    #expect(daemon.masterKeys == [])
    try expectItems(1...3, daemon)
    #expect(try daemon.ask("key rotate").hasPrefix("ERR conflict "))
    for signal in [SIGKILL, SIGTERM] {
      daemon.end(with: signal)
      try daemon.startWithCredentials()
      #expect(try daemon.client().statusValue("master-key") == "credential")
      try expectItems(1...3, daemon)
    }
    try daemon.credential(Self.credential, nil)
    daemon.end()
    try file.write(to: daemon.masterKey)
    try daemon.startWithCredentials()
    try expectLocked(daemon)
    #expect(try daemon.ask("key rotate").hasPrefix("ERR unavailable "))
    #expect(try Data(contentsOf: daemon.masterKey) == file)
  }

  @Test func `key rotate moves from one credential to the next`() throws {
    let (first, second) = (String(repeating: "1", count: 32), String(repeating: "2", count: 32))
    let daemon = try DaemonUnderTest()
    try daemon.credential(Self.credential, first)
    try daemon.startWithCredentials()
    try put(1...2, daemon)
    #expect(try daemon.ask("key rotate").hasPrefix("ERR conflict "))
    try daemon.credential(Self.credential, second)
    try daemon.restart()
    try expectLocked(daemon)
    try daemon.credential(Self.previous, first)
    try daemon.restart()
    try expectItems(1...2, daemon)
    #expect(try daemon.ask("key rotate") == "OK credential")
    #expect(try daemon.ask("key rotate").hasPrefix("ERR conflict "))
    try expectItems(1...2, daemon)
    try daemon.credential(Self.previous, nil)
    try daemon.restart()
    try expectItems(1...2, daemon)
    #expect(daemon.masterKeys == [])
    try daemon.credential(Self.credential, first)
    try daemon.restart()
    try expectLocked(daemon)
  }

  // MARK: Rotation

  @Test func `key rotate moves from one key file to the next, and old keys open nothing`() throws {
    let daemon = try DaemonUnderTest().start()
    try put(1...3, daemon)
    var old: [Data] = []
    for round in 0..<4 {
      old.append(try Data(contentsOf: daemon.masterKey))
      #expect(try daemon.ask("key rotate") == "OK file")
      #expect(daemon.masterKeys == ["master.key"])
      try expectItems(1...3, daemon)
      if round == 1 { daemon.end(with: SIGKILL) }
      if round == 2 { daemon.end() }
      if round > 0, round < 3 { try daemon.start() }
    }
    daemon.end()
    let current = try Data(contentsOf: daemon.masterKey)
    #expect(Set(old + [current]).count == 5)
    for key in old {
      try key.write(to: daemon.masterKey)
      try daemon.start()
      try expectLocked(daemon)
      daemon.end()
    }
    try current.write(to: daemon.masterKey)
    try daemon.start()
    try expectItems(1...3, daemon)
  }

  @Test func `key rotate requires an admin`() throws {
    let daemon = try DaemonUnderTest().start()
    let other = try OtherUser(65_534, of: daemon)
    #expect(try other.ask("key rotate").hasPrefix("ERR denied "))
    try other.end()
  }

  @Test func `readers and writers on other connections do not notice a rotation`() throws {
    let daemon = try DaemonUnderTest().start()
    try put(1...3, daemon)
    let readers = try (1...2).map { reader in
      Load(try daemon.client(), { _ in "item read service=s account=a\(reader)" }) { _, answer in
        (try? readPair(answer[0])) == pair(reader)
      }
    }
    let writers = try (1...2).map { writer in
      Load(try daemon.client(), { "item put service=w account=w\(writer) data=\(pair($0)) label=\(pair($0))" }) {
        $1 == [$0 == 0 ? "OK created" : "OK replaced"]
      }
    }
    for load in readers + writers { while load.answers < 2 { usleep(1_000) } }
    for _ in 0..<20 { #expect(try daemon.ask("key rotate") == "OK file") }
    let written = writers.map(\.answers)
    for load in readers + writers { #expect(load.stop() == []) }
    #expect(written.allSatisfy { $0 > 2 })
    daemon.end(with: SIGKILL)
    try daemon.start()
    for (place, writer) in writers.enumerated() {
      #expect(
        try readPair(try daemon.ask("item read service=w account=w\(place + 1)")) == pair(writer.answers - 1))
    }
    #expect(daemon.masterKeys == ["master.key"])
  }
}
