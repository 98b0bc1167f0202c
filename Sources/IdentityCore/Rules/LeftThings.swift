// Push tokens and items that a copy leaves to its original (identityd-protocol(7), sections "PUSH TOKENS" and "ITEMS").
//
// Nothing is deleted at first, because an accident looks like a copy: a boot with an emptied /etc, for example.

/// The relation between this machine and the one that had the previous identifier.
enum Course: Equatable, Sendable {
  /// They are one machine.
  case same
  /// This one may be a copy of the other, which then goes on with the identifier, the push tokens and the items for one
  /// device only.
  case copy
  /// This one is the original, or is it again: the other was a copy, or an accident.
  case wayBack
}

/// A push token or an item that a renewal left to the machine that this one may be a copy of.
enum LeftThing: Equatable, Sendable {
  case token(Token)
  case item(HeldItem)

  fileprivate var deletion: Change {
    switch self {
    case .token(let token): .tokenDeleted(token)
    case .item(let held): .itemDeleted(held.item)
    }
  }

  fileprivate func describe(to reply: inout Reply, for peer: Peer) {
    let owner: Text
    switch self {
    case .token(let token):
      owner = token.app
      reply.word(.string("token"))
      reply.attribute("app", .text(token.app))
      reply.attribute("provider", .text(token.provider))
    case .item(let held):
      owner = held.item.owner
      reply.word(.string("item"))
      reply.attribute("app", .text(held.item.owner))
      reply.attribute("group", .text(held.key.group))
      reply.attribute("service", .text(held.key.service))
      reply.attribute("account", .text(held.key.account))
    }
    reply.attribute("own", owner == peer.app ? nil : .yesOrNo(false))
  }
}

/// All push tokens and all items.
private struct AllThings: BlockSource {
  private var tokens: TokenBlocks
  private var items: ItemRange

  init(_ registry: Registry) {
    tokens = registry.tokens.blocks
    items = ItemRange(registry.items.held)
  }

  mutating func next() -> ArraySlice<LeftThing> {
    let tokens = tokens.next().map(LeftThing.token)
    return tokens.isEmpty ? items.next().map(LeftThing.item)[...] : tokens[...]
  }
}

extension Registry {
  /// Returns whether a token was left to another machine: the token has neither the device identifier that its app sees
  /// nor that of this machine.
  package func isLeft(_ token: Token) -> Bool {
    guard !leftDevices.isEmpty, token.device != self[.device]?.value else { return false }
    if let device = self[deviceScope(of: token.app)]?.value { return device != token.device }
    return isLeft(token.device)
  }

  /// Returns whether an item was left to another machine, so that it is locked.
  ///
  /// The items of the fleet's service are not: the service has the keys of the account, and makes keys of its own for this
  /// device. Beside a daemon that a user runs, the service has no manifest with the right `fleet`, so the name of its items
  /// counts, too. An app that takes this name loses only the lock of its own items.
  func isLeft(_ item: Item) -> Bool {
    isLeft(item.number, item.isThisDeviceOnly) && !isOfFleet(item)
  }

  private func isOfFleet(_ item: Item) -> Bool {
    rights(of: item.owner).contains(.fleet) || item.key.service == Self.fleetService
  }

  /// The attribute `service` of the items of the fleet's service (identity-fleet(8), FILES).
  private static let fleetService: Text = "identity-fleet"

  /// The number of the next new item. The number of a deleted item may be used again, but not that of a locked one.
  var nextItemNumber: Int64 { max(items.lastNumber + 1, leftDevices.reduce(0) { max($0, $1.items.upperBound) }) }

  /// Returns whether an item with this number would be locked, unless it is one of the fleet's service.
  func isLeft(_ number: Int64, _ isThisDeviceOnly: Bool) -> Bool {
    isThisDeviceOnly && leftDevices.contains { $0.items.contains(number) }
  }

  private func isLeft(_ device: UUID) -> Bool { leftDevices.contains { $0.device == device } }

  /// Returns whether a token can get another device identifier, because this machine alone has it.
  ///
  /// - Parameter previous: the identifier that the app saw before; nil if there was none.
  func mayMove(_ token: Token, from previous: UUID?) -> Bool {
    previous.map { $0 == token.device } ?? !isLeft(token.device)
  }

  /// Checks that an item is not locked.
  ///
  /// - Throws: `unavailable` for an item that was left to another machine.
  func requireUnlocked(_ item: Item) throws(Refusal) {
    guard item.isThisDeviceOnly, !isOfFleet(item) else { return }
    try requireProof(of: .settings)
    guard isLeft(item) else { return }
    throw .unavailable(
      "the item is for the device that this one may be a copy of, and comes back with that device; 'item put' replaces it"
    )
  }

  fileprivate func isStillLeft(_ thing: LeftThing) -> Bool {
    switch thing {
    case .token(let token): tokens[token.app, token.provider] == token && isLeft(token)
    case .item(let held): items[held.key]?.number == held.item.number && isLeft(held.item)
    }
  }

  fileprivate var leftThings: Search<AllThings> {
    Search(AllThings(self)) { thing in
      switch thing {
      case .token(let token): isLeft(token)
      case .item(let held): isLeft(held.item)
      }
    }
  }

  /// Returns the changes that delete some of the things that were left so long ago that they are deleted; empty if there
  /// are none.
  var deletionOfOldThings: [Change] {
    guard let newest = leftDevices.last, let day, day.day - newest.day >= Bound.leftDays else { return [] }
    var search = leftThings
    var effort = Int.max
    var plan = Plan(self)
    while plan.changes.count < Bound.forgottenTogether, case .found(let thing) = search.step(&effort) {
      plan.add(thing.deletion)
    }
    if plan.changes.isEmpty { plan.forgetLeftDevices() }
    return plan.changes
  }
}

extension Plan {
  /// Makes an identifier for the possible original if it has none, so that its items can come back to it.
  mutating func identifyOriginal(at now: Timestamp, _ random: () throws(Refusal) -> UUID) throws(Refusal) {
    guard registry[.device] == nil, registry.items.all.contains(where: { $0.isThisDeviceOnly }) else { return }
    put(
      Identifier(
        scope: .device, value: try random(), created: now, origin: .random, cause: .firstUse, author: nil))
  }

  /// Records that a device identifier was left to another machine, with the items for that device only.
  mutating func leave(_ device: UUID) {
    var free: [Range<Int64>] = []
    var start: Int64 = 1
    for items in registry.leftDevices.map(\.items).sorted(by: { $0.lowerBound < $1.lowerBound }) {
      if start < items.lowerBound { free.append(start..<items.lowerBound) }
      start = max(start, items.upperBound)
    }
    // Without an item, too: the day counts for the push tokens.
    free.append(start..<max(start, registry.items.lastNumber + 1))
    for items in free {
      let last = registry.leftDevices.last?.number ?? 0
      add(.deviceLeft(LeftDevice(number: last + 1, device: device, day: registry.day?.day ?? 1, items: items)))
    }
    for oldest in registry.leftDevices.dropLast(Bound.leftDevices) {
      for held in registry.items.held where oldest.items.contains(held.item.number) && registry.isLeft(held.item) {
        add(.itemDeleted(held.item))
      }
      add(.leftDeviceForgotten(oldest.number))
    }
  }

  /// Ends the records of a device identifier that was left and is in force again.
  ///
  /// If nothing else was left, the push tokens that have neither this identifier nor the one that their app sees now, as
  /// after a change of its manifest, are this device's as well.
  ///
  /// - Parameter device: nil if this machine is the original of all, as an admin says.
  mutating func regain(_ device: UUID?) {
    let regained = registry.leftDevices.filter { device == nil || $0.device == device }
    for left in regained { add(.leftDeviceForgotten(left.number)) }
    guard !regained.isEmpty, registry.leftDevices.isEmpty else { return }
    for token in registry.tokens.all {
      guard let device = registry[registry.deviceScope(of: token.app)]?.value, device != token.device else { continue }
      rehome(token, to: device)
    }
  }

  mutating func forgetLeftDevices() {
    for left in registry.leftDevices { add(.leftDeviceForgotten(left.number)) }
  }
}

// MARK: - Acknowledgement

extension RegistryCommand {
  package static func acknowledgeMachine(dryRun: Bool = false) -> Self { Self(AcknowledgeMachineRule(dryRun: dryRun)) }
}

/// `machine acknowledge`: ends the warnings about a change of the machine, and deletes the things that a renewal left to
/// the original. A dry run lists these. The identifiers in force stay.
///
/// The things are looked for before the change is decided, and are deleted in several steps if they are many.
struct AcknowledgeMachineRule: SearchRule {
  let dryRun: Bool
  /// The things found, as far as they are not deleted; nil before the search.
  var found: ArraySlice<LeftThing>?
  var basis: Basis { Basis(whole: [.settings, .apps, .identifiers, .items, .tokens]) }
  var answerKind: AnswerKind { found == nil ? .search : dryRun ? .list : .steps }

  func search(in registry: Registry, for peer: Peer) throws(Refusal) -> ObjectSearch {
    ObjectSearch(registry.leftThings) { [dryRun] in AcknowledgeMachineRule(dryRun: dryRun, found: $0[...]) }
  }

  func decide(in registry: Registry, for peer: Peer, _ context: Context?) throws(Refusal) -> Decision? {
    guard let found else { return try decideAtOnce(in: registry, for: peer, context) }
    if dryRun { return Decision(reply: .rows(Array(found)) { $0.describe(to: &$1, for: peer) }) }
    var plan = Plan(registry)
    for thing in found.prefix(Bound.changesPerStep) where registry.isStillLeft(thing) { plan.add(thing.deletion) }
    let rest = found.dropFirst(Bound.changesPerStep)
    if rest.isEmpty { plan.acknowledgeMachine() }
    guard context != nil || plan.changes.isEmpty && rest.isEmpty else { return nil }
    var decision = Decision(changes: plan.changes, reply: .done)
    if !rest.isEmpty { decision.next = AcknowledgeMachineRule(dryRun: false, found: rest) }
    return decision
  }
}

extension Plan {
  fileprivate mutating func acknowledgeMachine() {
    if let cause = registry.machine?.suspicion?.cause {
      for scope in registry.scopes where scope.level == .device { add(.deviceAcknowledged(scope, cause)) }
    }
    endSuspicion()
    forgetLeftDevices()
    let inForce = Set(registry.proofKeysInForce.map(\.number))
    endProofKeys(.lost) { !inForce.contains($0.number) }
    for var former in registry.formerMachines where !former.isAcknowledged {
      former.isAcknowledged = true
      add(.machineAcknowledged(former))
    }
  }
}
