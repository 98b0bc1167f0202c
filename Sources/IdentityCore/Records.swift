/// Kinds of records in the store.
package struct Records: OptionSet, Sendable {
  /// A bit for each kind.
  package let rawValue: UInt16

  /// Takes the bits as they are.
  package init(rawValue: UInt16) { self.rawValue = rawValue }

  /// The account, the machine and the seal.
  package static let settings = Records(rawValue: 1 << 0)
  /// The installed apps with their manifests.
  package static let apps = Records(rawValue: 1 << 1)
  /// When each app was used last.
  package static let uses = Records(rawValue: 1 << 2)
  /// The identifiers and their history.
  package static let identifiers = Records(rawValue: 1 << 3)
  /// The devices of the account.
  package static let devices = Records(rawValue: 1 << 4)
  /// The items, and the key of their secrets.
  package static let items = Records(rawValue: 1 << 5)
  /// The versions of the system and the apps.
  package static let versions = Records(rawValue: 1 << 6)
  /// The push tokens.
  package static let tokens = Records(rawValue: 1 << 7)
  /// The events that are kept.
  package static let events = Records(rawValue: 1 << 8)
  /// All of them.
  package static let all: Records = [settings, apps, uses, identifiers, devices, items, versions, tokens, events]

  private static let names: [(Records, String)] = [
    (settings, "settings"), (apps, "apps"), (uses, "uses of apps"), (identifiers, "identifiers"), (devices, "devices"),
    (items, "items"), (versions, "versions"), (tokens, "push tokens"), (events, "events"),
  ]

  /// The kinds in words, joined by commas.
  package var text: String { Self.names.filter { contains($0.0) }.map(\.1).joined(separator: ", ") }
}

/// The records that an answer is made of (Decisions/0048).
struct Basis: Equatable {
  /// Kinds of which one record is the answer. A record that is found is proven; none found says nothing unless all are.
  var found: Records = []
  /// Kinds of which every record counts, the ones that are not there included.
  var whole: Records = []
}

extension RegistryCommand {
  /// What the command's answer is made of.
  var basis: Basis {
    switch self {
    case .get: Basis(found: [.apps, .identifiers])
    case .history, .resolve, .renew, .migrate: Basis(whole: [.apps, .identifiers])
    case .apps, .forget, .forgetMatching: Basis(whole: [.apps, .uses])
    case .account, .setAccount, .seal: Basis(whole: .settings)
    case .devices, .putDevice, .removeDevice: Basis(whole: .devices)
    case .migrateFromItem: Basis(whole: [.apps, .identifiers, .items])
    case .item(.find), .item(.delete), .item(.store): Basis(whole: [.apps, .items])
    case .item(.read), .item(.update): Basis(found: [.apps, .items])
    case .version: Basis(whole: .versions)
    case .token(.list): Basis(whole: .tokens)
    case .token: Basis(found: .tokens)
    }
  }

  /// Whose records of ``Basis/found`` are needed of the apps; nil for the peer's own.
  fileprivate var named: Text? { if case .get(_, let app) = self { app } else { nil } }
}

// MARK: - Answers from a damaged store

extension Registry {
  /// The vendor, the binding and the groups of an app stand in its record.
  ///
  /// - Throws: where there is none, and records of apps are missing.
  package func requireRecord(of app: Text) throws(Refusal) { if apps[app] == nil { try requireProof(of: .apps) } }

  /// Answers as ``answer(_:for:in:)`` does, as far as what was proven allows it.
  func answerFromProven(_ command: RegistryCommand, for peer: Peer, in surroundings: Surroundings) throws(Refusal)
    -> Reply?
  {
    let basis = command.basis
    try requireProof(of: basis.whole)
    if basis.found.contains(.apps) { try requireRecord(of: command.named ?? peer.app) }
    do {
      return try answerFromAll(command, for: peer, in: surroundings)
    } catch {
      if case .notFound = error { try requireProof(of: basis.found) }
      throw error
    }
  }
}
