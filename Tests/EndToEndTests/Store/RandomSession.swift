import Foundation
import ReferenceModel
import TestSupport

/// A real daemon that is killed repeatedly, compared with the reference model: its answers and events must equal those
/// of the model.
///
/// A request that is in flight when the daemon is killed may or may not have been carried out. From then on there are
/// two models, until an answer or an event excludes one of them.
final class RandomSession {
  /// A user, and the app that a manifest may assign to the user.
  private struct User {
    let number: Int
    let group: Int
    let name: String?
    let app: String
  }

  /// A model, and the real values behind its symbols.
  private struct World {
    var model: ReferenceModel
    var bindings = Bindings()
  }

  // Users and a group of Debian's base-passwd.
  private static let users = [
    User(number: 0, group: 0, name: nil, app: "user:0"), User(number: 4_003, group: 5, name: nil, app: "user:4003"),
    User(number: 1, group: 1, name: "daemon", app: "org.a"), User(number: 8, group: 8, name: "mail", app: "org.b"),
    User(number: 4_001, group: 4_001, name: nil, app: "user:4001"),
    User(number: 4_002, group: 4_002, name: nil, app: "user:4002"),
  ]
  private static let apps = users.map(\.app) + ["user:1", "org.none"]
  private static let groups = ["org.shared", "org.media"]

  private let daemon: DaemonUnderTest
  private var random: SeededGenerator
  private var worlds: [World]
  /// The time of the model. Grows with each request.
  private var now: Int64 = 0
  private var connections: [Int: (connection: PeerConnection, peer: ReferenceModel.Peer)] = [:]
  private var sessions = 0
  /// The subscriber in this run of the daemon. `heard` has the number of the last event that each user has received.
  private var listener: (connection: PeerConnection, peer: ReferenceModel.Peer)?
  private var heard: [Int: Int] = [:]
  private var listening = 0
  private(set) var requests = 0
  private(set) var kills = 0

  init(_ seed: UInt64) throws {
    random = SeededGenerator(seed)
    daemon = try DaemonUnderTest()
    var model = ReferenceModel()
    model.itemQuota = (6, 1_024)
    worlds = [World(model: model)]
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    try daemon.configure(
      """
      [Apps]
      Directories=\(folder.path)
      [Access]
      AdminGroup=tty
      [Limits]
      ItemsPerApp=6
      ItemsPerUser=6
      ItemBytesPerApp=1K
      ItemBytesPerUser=1K

      """)
  }

  private var folder: URL { daemon.folder.appending(path: "apps") }

  /// Runs the daemon several times, each time up to a kill.
  func run(lives: Int, requests: Int) throws {
    try daemon.start()
    // The first event tells the system's version, which the model cannot know.
    let client = try daemon.client()
    guard try client.subscribe("since=0") == ["OK 0"], let first = try client.line() else {
      throw Failure("there was no first event")
    }
    worlds[0].model.tellOfSystem(first)
    for life in 1...lives {
      try listen()
      let end = self.requests + requests / lives
      while self.requests < end { try ask(Int.random(in: 1...3, using: &random)) }
      try kill(manifests: life < lives)
    }
    try listen()
    try hearAll()
  }

  // MARK: Requests

  private func peer(_ place: Int) throws -> (connection: PeerConnection, peer: ReferenceModel.Peer) {
    if let known = connections[place] { return known }
    let new = try connect(place)
    connections[place] = new
    return new
  }

  /// Connects a new process, which is a new session.
  private func connect(_ place: Int) throws -> (connection: PeerConnection, peer: ReferenceModel.Peer) {
    let user = Self.users[place]
    sessions += 1
    let isApp = worlds[0].model.hasManifest(user.app)
    let peer = ReferenceModel.Peer(
      app: isApp || user.name == nil ? user.app : "user:\(user.number)", user: user.number,
      author: "uid:\(user.number)", isAdmin: place < 2, session: sessions)
    return (try PeerConnection(user.number, group: user.group, of: daemon), peer)
  }

  /// Sends a few requests at once, and compares their answers.
  private func ask(_ count: Int) throws {
    let place = Int.random(in: 0..<Self.users.count, using: &random)
    let (connection, peer) = try peer(place)
    // Chooses all requests before the first has an effect.
    let wanted = (0..<count).map { _ in request() }
    try connection.send(try wanted.map { try line($0) })
    for request in wanted {
      guard let answer = try connection.answer() else { throw Failure("the connection ended after '\(request)'") }
      try compare(request, answer, peer)
    }
    try hear()
  }

  private func request() -> String {
    requests += 1
    while true {
      let request = worlds[0].model.request(of: Self.apps, groups: Self.groups, tellsTime: false, &random)
      // An identifier that was made just before the kill may be unknown to all clients, so that no request can name it.
      if worlds[0].bindings.line(request) != nil { return request }
    }
  }

  private func line(_ request: String) throws -> String {
    guard let line = worlds[0].bindings.line(request) else {
      throw Failure("\(request): it was never told what that is")
    }
    return line
  }

  /// Keeps every world in which the answer is right.
  private func compare(_ request: String, _ answer: [String], _ peer: ReferenceModel.Peer) throws {
    now += 1
    var expected: [[String]] = []
    worlds = worlds.compactMap { world in
      var world = world
      expected.append(world.model.answer(request, by: peer, at: now))
      return world.bindings.matches(expected[expected.count - 1], answer) ? world : nil
    }
    guard !worlds.isEmpty else {
      throw Failure("request \(requests): \(peer.app) asks '\(request)': \(answer) where \(expected) is right")
    }
  }

  // MARK: Events

  /// Subscribes a user, from the first event or from the last one that this user has received.
  private func listen() throws {
    // An admin receives all events, which show the world that is right.
    listening = worlds.count > 1 ? 0 : Int.random(in: 0..<Self.users.count, using: &random)
    let listener = try connect(listening)
    self.listener = listener
    let since = random.once(in: 3) ? 0 : heard[listening, default: 0]
    let answer = try listener.connection.subscribe("since=\(since)")
    guard answer == ["OK \(since)"] else { throw Failure("\(listener.peer.app) subscribes since \(since): \(answer)") }
    heard[listening] = since
    // Events from before the subscription are filtered by the present rights, and each is sent once.
    try hear()
  }

  /// Compares the received events: all that the subscriber may see, in order, and no others.
  private func hear() throws {
    guard let (connection, peer) = listener else { return }
    var told: [String] = []
    var expected: [[ReferenceModel.Event]] = worlds.map { world in
      world.model.events.dropFirst(heard[listening, default: 0]).filter { world.model.hears(peer, $0) }
    }
    while let longest = expected.map(\.count).max(), told.count < longest {
      // If the worlds disagree, the answer to a ping marks the end of the events.
      if expected.contains(where: { $0.count == told.count }) { break }
      guard let line = try connection.line() else { throw Failure("the events ended") }
      told.append(line)
      try keepWorlds(&expected) { world, events in world.bindings.matches(events[told.count - 1].text, line) }
    }
    if worlds.count > 1 || random.once(in: 10) {
      try connection.send(["ping"])
      while let line = try connection.line(), line != "OK" { told.append(line) }
      try keepWorlds(&expected) { world, events in
        events.count == told.count && zip(events, told).allSatisfy { world.bindings.matches($0.text, $1) }
      }
    }
    heard[listening] = worlds[0].model.events.count
  }

  private func keepWorlds(
    _ expected: inout [[ReferenceModel.Event]], where isRight: (inout World, [ReferenceModel.Event]) -> Bool
  ) throws {
    var kept: [World] = []
    var right: [[ReferenceModel.Event]] = []
    for (place, world) in worlds.enumerated() {
      var world = world
      guard isRight(&world, expected[place]) else { continue }
      kept.append(world)
      right.append(expected[place])
    }
    guard !kept.isEmpty else {
      throw Failure("request \(requests): what is told is not \(expected.map { $0.map(\.text).suffix(4) })")
    }
    (worlds, expected) = (kept, right)
  }

  private func hearAll() throws {
    listener = nil
    for place in Self.users.indices {
      let (connection, peer) = try connect(place)
      var lines = try connection.subscribe("since=0")
      try connection.send(["quit"])
      try connection.endWriting()
      while let line = try connection.line() { lines.append(line) }
      let told = lines.dropFirst().dropLast()
      worlds = worlds.filter { world in
        var bindings = world.bindings
        let events = world.model.events.filter { world.model.hears(peer, $0) }
        return events.count == told.count && zip(events, told).allSatisfy { bindings.matches($0.text, $1) }
      }
      guard !worlds.isEmpty else { throw Failure("\(peer.app) is not told what happened: \(told.suffix(5))") }
    }
  }

  // MARK: Kills

  /// Kills the daemon while a request is in flight, after its answer, or while the daemon is idle. The manifests may
  /// change while the daemon is down.
  private func kill(manifests changes: Bool) throws {
    kills += 1
    let place = Int.random(in: 0..<Self.users.count, using: &random)
    let (connection, peer) = try peer(place)
    let wanted = request()
    try connection.send([try line(wanted)])
    var answer: [String]?
    if random.once(in: 2) {
      answer = try connection.answer()
    } else {
      usleep(UInt32.random(in: 0...3_000, using: &random))
    }
    daemon.end(with: SIGKILL)
    try connection.endWriting()
    if answer == nil { answer = try connection.answer() }
    if let answer {
      // An answered change is on disk.
      try compare(wanted, answer, peer)
    } else {
      now += 1
      worlds += worlds.map { world in
        var world = world
        _ = world.model.answer(wanted, by: peer, at: now)
        return world
      }
    }
    connections = [:]
    listener = nil
    let suspended = changes ? try changeManifests() : []
    try daemon.start()
    if changes { try removePackages(suspended) }
  }

  /// Uninstalls the apps whose manifests are gone, as the removal of their packages does.
  ///
  /// - Parameter suspended: the apps that are suspended in each world.
  private func removePackages(_ suspended: [[String]]) throws {
    let client = try daemon.client()
    let rows = try client.ask("app list").filter { $0.contains(" suspended=") }
    let apps = rows.map { String($0.split(separator: " ")[1]) }
    worlds = zip(worlds, suspended).filter { $1 == apps }.map(\.0)
    guard !worlds.isEmpty else { throw Failure("\(apps) are suspended, and not \(suspended)") }
    for app in apps {
      guard try client.ask("app forget \(app)") == ["OK"] else { throw Failure("\(app) cannot be forgotten") }
      now += 1
      for place in worlds.indices { worlds[place].model.remove(app, at: now) }
    }
  }

  /// Returns the apps that are suspended then, in each world.
  private func changeManifests() throws -> [[String]] {
    var found: [String: ReferenceModel.Manifest] = [:]
    for user in Self.users {
      guard let name = user.name else { continue }
      let file = folder.appending(path: "\(user.app).app")
      try? FileManager.default.removeItem(at: file)
      if random.once(in: 5) { continue }
      let manifest = ReferenceModel.Manifest(
        vendor: random.one(of: ["org.v", "org.w"]), device: random.one(of: ["shared", "shared", "vendor", "app"]),
        order: random.one(of: ["numeric", "semver", "debian", "linux", "auto"]),
        groups: ["org.shared", "org.media", "org.a"].filter { _ in random.once(in: 2) })
      found[user.app] = manifest
      let text = """
        [App]
        Vendor=\(manifest.vendor)
        User=\(name)
        AccessGroups=\(manifest.groups.joined(separator: " "))
        DeviceIdentifier=\(manifest.device)
        VersionOrder=\(manifest.order)

        """
      try Data(text.utf8).write(to: file)
    }
    now += 1
    return worlds.indices.map { worlds[$0].model.survey(found, at: now) }
  }
}
