/// A set of kinds of records in the store.
package struct Records: OptionSet, Sendable {
  /// One bit for each kind.
  package let rawValue: UInt16

  package init(rawValue: UInt16) { self.rawValue = rawValue }

  /// The account, the machine and the seal.
  package static let settings = Records(rawValue: 1 << 0)
  /// The installed apps with their manifests.
  package static let apps = Records(rawValue: 1 << 1)
  /// The last use of each app.
  package static let uses = Records(rawValue: 1 << 2)
  /// The identifiers and their history.
  package static let identifiers = Records(rawValue: 1 << 3)
  /// The devices of the account.
  package static let devices = Records(rawValue: 1 << 4)
  /// The items, and the key of their secrets.
  package static let items = Records(rawValue: 1 << 5)
  /// The versions of the system and of the apps.
  package static let versions = Records(rawValue: 1 << 6)
  /// The push tokens.
  package static let tokens = Records(rawValue: 1 << 7)
  /// The events that are kept.
  package static let events = Records(rawValue: 1 << 8)
  /// The messages of the fleet, and its counter, generation and runs on this device.
  package static let fleet = Records(rawValue: 1 << 9)
  /// The time of the last backup.
  package static let backup = Records(rawValue: 1 << 10)
  /// The recovery key.
  package static let recovery = Records(rawValue: 1 << 11)
  /// The keys of proofs.
  package static let proofs = Records(rawValue: 1 << 12)
  /// All kinds of records.
  package static let all: Records = [
    settings, apps, uses, identifiers, devices, fleet, items, versions, tokens, backup, recovery, events, proofs,
  ]

  private static let names: [(Records, String)] = [
    (settings, "settings"), (apps, "apps"), (uses, "uses of apps"), (identifiers, "identifiers"), (devices, "devices"),
    (fleet, "fleet"), (items, "items"), (versions, "versions"), (tokens, "push tokens"),
    (backup, "last backup"), (recovery, "recovery key"), (events, "events"),
    (proofs, "proof keys"),
  ]

  /// The kinds in words, joined by commas.
  package var text: String { Self.names.filter { contains($0.0) }.map(\.1).joined(separator: ", ") }
}

/// The records that an answer depends on (Decisions/0048).
package struct Basis: Equatable, Sendable {
  /// Kinds of which a single record is the answer. A record that is found is proven. The absence of a record is an
  /// answer only if every record of the kind is proven.
  var found: Records = []
  /// Kinds of which every record matters, so that all of them have to be proven.
  var whole: Records = []
}

// MARK: - Answers from a damaged store

extension Registry {
  /// Checks that the record of an app is proven. The record holds the vendor, the device binding and the access groups.
  ///
  /// - Throws: the refusal of requests that need unproven records, if the app has no record and some records of apps
  ///   are missing.
  package func requireRecord(of app: Text) throws(Refusal) { if apps[app] == nil { try requireProof(of: .apps) } }

  /// Checks the right that a rule needs, and applies the rule, but only to records that are proven to be current.
  func proven(_ rule: any RegistryRule, for peer: Peer, in surroundings: Surroundings, _ context: Context?)
    throws(Refusal) -> Decision?
  {
    if let right = rule.right { try require(right, of: peer) }
    guard !unproven.isEmpty else { return try rule.decide(in: self, for: peer, in: surroundings, context) }
    let basis = rule.basis
    try requireProof(of: basis.whole)
    if basis.found.contains(.apps) { try requireRecord(of: rule.namedApp ?? peer.app) }
    do throws(Refusal) {
      return try rule.decide(in: self, for: peer, in: surroundings, context)
    } catch {
      if case .notFound = error { try requireProof(of: basis.found) }
      throw error
    }
  }
}
