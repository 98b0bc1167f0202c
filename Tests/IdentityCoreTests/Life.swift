import IdentityCore
import TestSupport

/// A registry as the writer drives it: what is decided is recorded, applied and told, one change after the other.
///
/// In what it writes, a drawn UUID is `r1`, `r2`, … in the order they were drawn, one of the machine-id is `m.device`,
/// one that a test gives is `g1`, and a time is `t` and its milliseconds.
struct Life {
  /// What is in force.
  var registry = Registry()
  /// The clock, in milliseconds.
  var now: Int64 = 0
  /// The machine-id, by a name; nil where there is none that can be used.
  var machine: String? = "m"
  /// What the administrator allows.
  var limits = Limits()
  /// Every event there was.
  private(set) var events: [Event] = []
  /// The secret of each edition of an item that there was.
  private(set) var secrets: [UUID: SealedSecret] = [:]
  private let names = Names()

  /// The UUIDs of a test, and what they are called. One object, so that every copy of a life draws others.
  private final class Names {
    var drawn: UInt64 = 0
    var spoken: [UUID: String] = [:]

    func draw() -> UUID {
      drawn += 1
      let uuid = UUID(high: 0x4000, low: 0x8000_0000_0000_0000 | drawn)
      spoken[uuid] = "r\(drawn)"
      return uuid
    }

    func derived(_ machine: String, _ scope: Scope) -> UUID {
      let name =
        "\(machine).\([scope.level.rawValue, scope.app.map { "\($0)" }, scope.vendor.map { "\($0)" }].compactMap(\.self).joined(separator: "."))"
      // An app and a vendor may have the same name.
      let kind = scope.app == nil ? "vendor" : "app"
      let hash = (kind + name).utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
      let uuid = UUID(high: 0x3333_0000_0000_4000, low: hash).stamped(version: 4)
      spoken[uuid] = name
      return uuid
    }
  }

  // MARK: Going on

  /// What an answer may need from outside. A session is known by the number of its process.
  var surroundings: Surroundings { .fixed(at: now) }

  /// What a decision may need from outside.
  func context(_ peer: Peer?) -> Context {
    let (names, machine, secrets) = (names, machine, secrets)
    return Context(
      peer: peer, in: surroundings, limits: limits,
      random: { () throws(Refusal) in names.draw() },
      machine: { (scope) throws(Refusal) in machine.map { names.derived($0, scope) } },
      fingerprint: { Text("#\($0)") },
      secret: { (item) throws(Refusal) in
        guard let secret = secrets[item.edition] else { throw .broken("no secret has this edition") }
        return secret
      },
      identifier: { (secret) throws(Refusal) in
        guard let uuid = UUID(Text(trusted: secret.bytes)) else { throw .invalidUUID("the secret") }
        return uuid
      })
  }

  /// Carries a request out.
  ///
  /// - Returns: the answer, a string a line.
  @discardableResult
  mutating func ask(_ command: RegistryCommand, as peer: Peer) throws(Refusal) -> [String] {
    now += 1
    let decision = try registry.decide(command, context(peer))
    take(decision.changes)
    return lines(decision.reply)
  }

  /// Why a request is refused; nil where it is not. Nothing is changed by it.
  func refusal(of command: RegistryCommand, as peer: Peer) -> Refusal? {
    do throws(Refusal) {
      _ = try registry.decide(command, context(peer))
      return nil
    } catch {
      return error
    }
  }

  /// Takes changes in, each with its event.
  mutating func take(_ changes: [Change]) {
    for change in changes {
      let recorded = registry.record(change, at: Timestamp(milliseconds: now))
      registry.apply(recorded)
      if case .itemStored(let item, let secret, _) = change { secrets[item.edition] = secret }
      if let event = recorded.event { events.append(event) }
    }
  }

  /// Has exactly these manifests in the folders, as the daemon finds them.
  @discardableResult
  mutating func install(_ manifests: [Text: Manifest]) -> [Change] {
    survey(.found(manifests.mapValues { .init(file: "\($0.vendor).app", manifest: $0) }, faults: []))
  }

  /// Takes in what a look at the manifests found.
  @discardableResult
  mutating func survey(_ survey: ManifestSurvey) -> [Change] {
    now += 1
    let entries = registry.manifests(after: survey)
    var claims = AppClaims()
    let refused = claims.take(entries).refused
    let changes = registry.reconciliation(
      with: survey, entries, refused: refused, at: Timestamp(milliseconds: now))
    take(changes)
    return changes
  }

  /// Starts on a machine, by the names of its two marks.
  @discardableResult
  mutating func start(
    _ machine: Text?, _ hardware: Text?, sealedHere: Bool = false, onMachineChange: MachinePolicy = .renew,
    onHardwareChange: MachinePolicy = .keep
  ) throws(Refusal) -> [Change] {
    now += 1
    self.machine = machine.map { "\($0)" }
    let changes = try registry.changesAtStart(
      on: MachineFingerprint(machine: machine, hardware: hardware), isSealedHere: sealedHere,
      onMachineChange: onMachineChange, onHardwareChange: onHardwareChange, context(nil))
    take(changes)
    return changes
  }

  // MARK: In words

  /// What an identifier in force is called; nil where there is none.
  func spoken(_ scope: Scope) -> String? { registry[scope].map { spoken($0.value) } }

  /// The lines of an answer; the secret of an item stands in them as it is.
  func lines(_ reply: Reply) -> [String] {
    var lines: [String] = []
    for part in reply.allParts {
      switch part {
      case .row: lines.append("*")
      case .final: lines.append("OK\(reply.item.map { " data=\(secret(of: $0))" } ?? "")")
      case .word(let value): lines[lines.count - 1] += " \(spoken(value))"
      case .attribute(let name, let value): lines[lines.count - 1] += " \(name)=\(spoken(value))"
      }
    }
    return lines
  }

  /// The secret of an item, as text.
  func secret(of item: Item) -> String {
    secrets[item.edition].map { String(decoding: $0.bytes, as: UTF8.self) } ?? "nothing"
  }

  /// The events from a number on, each as `NUMBER TOPIC NAME attributes > AUDIENCE`.
  func told(from number: Int64 = 1) -> [String] {
    events.reversed().prefix { $0.sequence >= number }.reversed().map { event in
      let attributes = event.attributes.map { " \($0.name)=\(spoken(.text($0.value)))" }.joined()
      return "\(event.sequence) \(event.topic.rawValue) \(event.name)\(attributes) > \(spoken(event.audience))"
    }
  }

  private func spoken(_ audience: Audience) -> String {
    switch audience {
    case .sharing: "sharing"
    case .vendor(let vendor): "vendor \(vendor)"
    case .app(let app): "app \(app)"
    case .group(let group): "group \(group)"
    }
  }

  private func spoken(_ value: Reply.Value) -> String {
    switch value {
    case .uuid(let uuid): spoken(uuid)
    case .time(let time): "t\(time.milliseconds)"
    case .number(let number): "\(number)"
    case .yesOrNo(let flag): flag ? "yes" : "no"
    case .string(let string): string.isEmpty ? "\"\"" : string
    case .text(let text): UUID(text).map(spoken) ?? (text.isEmpty ? "\"\"" : "\(text)")
    }
  }

  private func spoken(_ uuid: UUID) -> String {
    if uuid.high == given(0).high { return "g\(uuid.low & 0xffff)" }
    return names.spoken[uuid] ?? "\(uuid)"
  }
}

/// A UUID that a test hands in: `g1`, `g2`, …
func given(_ number: UInt64) -> UUID { UUID(high: 0x5555_5555_5555_4555, low: 0x8555_0000_0000_0000 | number) }

extension Registry {
  /// Answers a question that needs nothing from outside.
  func answer(_ command: RegistryCommand, for peer: Peer) throws(Refusal) -> Reply? {
    try answer(command, for: peer, in: Life().surroundings)
  }
}

// MARK: - People and programs

let root = Peer(userID: 0, groupID: 0, processID: 1, isAdmin: true)
let alice = Peer(userID: 1_000, groupID: 1_000, processID: 2, isAdmin: false)
let bob = Peer(userID: 1_001, groupID: 1_001, processID: 5, isAdmin: false)

/// A peer that a manifest made an app.
func peer(_ app: Text) -> Peer {
  Peer(
    app: app, userID: 998, groupID: 998, processID: 3, place: PeerPlace(unit: "some.service"),
    session: nil,
    isAdmin: false)
}

extension Peer {
  /// The same peer in a session of its own, by a number.
  func session(_ number: Int32) -> Peer {
    Peer(
      app: app, userID: userID, groupID: groupID, processID: number, place: place,
      session: .process(number, start: 1), isAdmin: isAdmin)
  }
}

/// A service that a user runs.
func service(_ name: String, of user: UInt32) -> Peer {
  Peer(
    userID: user, groupID: user, processID: 4, place: PeerPlace(unit: Text("\(name).service"), owner: user),
    isAdmin: false)
}

extension Manifest {
  /// A manifest in few words.
  init(_ vendor: Text, device: DeviceBinding = .shared, unit: Text? = nil, groups: [Text] = []) {
    self.init(vendor: vendor)
    deviceBinding = device
    self.unit = unit
    accessGroups = groups
  }
}
