import IdentityCore
import IdentityWire
import TestSupport

/// A registry driven as the writer drives it: each change of a decision is recorded and applied, and its event is kept.
///
/// In output, UUIDs and times have short names: `r1`, `r2`, … for random UUIDs in the order of their generation,
/// `m.device` for a UUID derived from the machine-id, `g1` for a UUID given by a test, and `t` with the
/// milliseconds for a time.
struct Life {
  /// The state after all changes.
  var registry = Registry()
  /// The faults of the last survey.
  private(set) var faults: [String] = []
  /// The clock, in milliseconds.
  var now: Int64 = 0
  /// A name in place of the machine-id. Nil if there is no usable machine-id.
  var machine: String? = "m"
  /// The limits set by the administrator.
  var limits = Limits()
  /// All events so far.
  private(set) var events: [Event] = []
  /// The secret of every edition of an item so far.
  private(set) var secrets: [UUID: SealedSecret] = [:]
  private let names = Names()

  /// The UUIDs of a test and their short names. An object, so that all copies of a `Life` draw different UUIDs.
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
      // The hash includes the kind, because an app and a vendor may have the same name.
      let kind = scope.app == nil ? "vendor" : "app"
      let hash = (kind + name).utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
      let uuid = UUID(high: 0x3333_0000_0000_4000, low: hash).stamped(version: 4)
      spoken[uuid] = name
      return uuid
    }
  }

  // MARK: Requests and changes

  /// The external input for an answer. The process ID identifies a session.
  var surroundings: Surroundings { .fixed(at: now) }

  /// Returns the external input for a decision.
  func context(_ peer: Peer?) -> Context {
    let (names, machine, secrets) = (names, machine, secrets)
    return Context(
      peer: peer, in: surroundings, limits: limits,
      random: { () throws(Refusal) in names.draw() },
      machine: { (scope) throws(Refusal) in machine.map { names.derived($0, scope) } },
      digest: { $0 }, fingerprint: { Text("#\($0)") },
      secret: { (item) throws(Refusal) in
        guard let secret = secrets[item.edition] else { throw .broken("no secret has this edition") }
        return secret
      },
      identifier: { (secret) throws(Refusal) in
        guard let uuid = UUID(Text(trusted: secret.bytes)) else { throw .invalidUUID("the secret") }
        return uuid
      })
  }

  /// Executes a request.
  ///
  /// - Returns: the answer, one string per line.
  @discardableResult
  mutating func ask(_ command: RegistryCommand, as peer: Peer) throws(Refusal) -> [String] {
    now += 1
    var rest: RegistryCommand? = try found(command, as: peer)
    while let step = rest {
      let decision = try registry.decide(step, context(peer))
      take(decision.changes)
      rest = decision.nextCommand
      if rest == nil {
        _ = try decision.reply.allParts()
        return lines(decision.reply)
      }
    }
    return []
  }

  /// Returns the command with the objects that its search finds, as the server carries it out.
  private func found(_ command: RegistryCommand, as peer: Peer) throws(Refusal) -> RegistryCommand {
    guard var search = try registry.search(command, for: peer) else { return command }
    while true {
      var effort = 3
      if let found = search.command(&effort) { return found }
    }
  }

  /// Returns the refusal of a request, or nil if the request is granted. Changes nothing.
  func refusal(of command: RegistryCommand, as peer: Peer) -> Refusal? {
    do throws(Refusal) {
      _ = try registry.decide(try found(command, as: peer), context(peer)).reply.allParts()
      return nil
    } catch {
      return error
    }
  }

  /// Records and applies changes, and keeps their events.
  mutating func take(_ changes: [Change]) {
    for change in changes {
      let recorded = registry.record(change, at: Timestamp(milliseconds: now))
      registry.apply(recorded)
      switch change {
      case .itemStored(let item, let secret, _): secrets[item.edition] = secret
      case .appReplaced(let replacement):
        for moved in replacement.items { secrets[moved.item.edition] = moved.secret }
      default: break
      }
      if let event = recorded.event { events.append(event) }
    }
  }

  /// Replaces all manifests, through a survey like the daemon's. Uninstalls the apps whose manifests are gone, as the
  /// removal of their packages does.
  @discardableResult
  mutating func install(_ manifests: [Text: Manifest]) -> [Change] {
    var changes = survey(manifests)
    for (id, app) in registry.apps where app.suspended != nil {
      let removal = (try? registry.decide(.forget(app: id), context(root)).changes) ?? []
      take(removal)
      changes += removal
    }
    return changes
  }

  /// Replaces all manifests, through a survey like the daemon's.
  @discardableResult
  mutating func survey(_ manifests: [Text: Manifest], in folder: String = "/usr/lib/identityd/apps.d") -> [Change] {
    survey(.found(manifests.mapValues { .init(file: "\(folder)/\($0.vendor).app", manifest: $0) }, faults: []))
  }

  /// Applies the result of a survey of the manifests.
  @discardableResult
  mutating func survey(_ survey: ManifestSurvey) -> [Change] {
    now += 1
    let (survey, replacements, faults) = registry.replacements(in: survey, context(nil))
    self.faults = faults.map(\.text)
    let entries = registry.manifests(after: survey)
    var claims = AppClaims()
    let refused = claims.insert(entries).refused
    let changes = registry.reconciliation(
      with: survey, entries, refused: refused, replacements: replacements, at: Timestamp(milliseconds: now)
    ).flatMap(\.self)
    take(changes)
    return changes
  }

  /// Starts on a machine whose machine-id and hardware have these names.
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

  // MARK: Output

  /// Returns the short name of the identifier in force. Nil if there is none.
  func spoken(_ scope: Scope) -> String? { registry[scope].map { spoken($0.value) } }

  /// Returns the lines of an answer. The secret of an item is in plain text.
  func lines(_ reply: Reply) -> [String] {
    var lines: [String] = []
    var items = reply.secrets[...]
    for part in (try? reply.allParts()) ?? [] {
      switch part {
      case .row: lines.append("*")
      case .final: lines.append("OK")
      case .secret: lines[lines.count - 1] += " data=\(items.popFirst().map { secret(of: $0) } ?? "none")"
      case .word(let value): lines[lines.count - 1] += " \(spoken(value))"
      case .attribute(let name, let value): lines[lines.count - 1] += " \(name)=\(spoken(value))"
      }
    }
    return lines
  }

  /// Returns the secret of an item as text.
  func secret(of item: Item) -> String {
    secrets[item.edition].map { String(decoding: $0.bytes, as: UTF8.self) } ?? "nothing"
  }

  /// Returns the events from a number on, each as `NUMBER TOPIC NAME attributes > AUDIENCE`.
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

/// Returns a UUID given by a test: `g1`, `g2`, …
func given(_ number: UInt64) -> UUID { UUID(high: 0x5555_5555_5555_4555, low: 0x8555_0000_0000_0000 | number) }

extension Registry {
  /// Answers a command that needs no external input.
  func answer(_ command: RegistryCommand, for peer: Peer) throws(Refusal) -> Reply? {
    try answer(command, for: peer, in: Life().surroundings)
  }
}

// MARK: - Peers

let root = Peer(userID: 0, groupID: 0, processID: 1, isAdmin: true)
let alice = Peer(userID: 1_000, groupID: 1_000, processID: 2, isAdmin: false)
let bob = Peer(userID: 1_001, groupID: 1_001, processID: 5, isAdmin: false)

/// Returns a peer of an app that has a manifest.
func peer(_ app: Text) -> Peer {
  Peer(
    app: app, userID: 998, groupID: 998, processID: 3, place: PeerPlace(unit: "some.service"),
    session: nil,
    isAdmin: false)
}

extension Peer {
  /// Returns the same peer in its own session, which the number identifies.
  func session(_ number: Int32) -> Peer {
    Peer(
      app: app, userID: userID, groupID: groupID, processID: number, place: place,
      session: .process(number, start: 1), isAdmin: isAdmin)
  }
}

/// Returns a peer in a service of a user's own manager.
func service(_ name: String, of user: UInt32) -> Peer {
  Peer(
    userID: user, groupID: user, processID: 4, place: PeerPlace(unit: Text("\(name).service"), owner: user),
    isAdmin: false)
}

extension Manifest {
  init(_ vendor: Text, device: DeviceBinding = .shared, unit: Text? = nil, groups: [Text] = []) {
    self.init(vendor: vendor)
    deviceBinding = device
    self.unit = unit
    accessGroups = groups
  }
}
