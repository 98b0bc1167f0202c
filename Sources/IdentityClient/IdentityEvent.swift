import IdentityCore

/// What events are about.
public struct EventTopic: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  /// As the protocol has it.
  public let rawValue: String
  /// Takes a topic of the protocol.
  public init(rawValue: String) { self.rawValue = rawValue }
  /// The topic's name.
  public var description: String { rawValue }

  /// The device identifier.
  public static let device = EventTopic(rawValue: "device")
  /// Installation identifiers.
  public static let installation = EventTopic(rawValue: "installation")
  /// Vendors' identifiers.
  public static let vendor = EventTopic(rawValue: "vendor")
  /// Apps that come and go.
  public static let app = EventTopic(rawValue: "app")
  /// The devices of the account.
  public static let devices = EventTopic(rawValue: "devices")
  /// The account.
  public static let account = EventTopic(rawValue: "account")
  /// Items; never their secrets.
  public static let item = EventTopic(rawValue: "item")
  /// Versions of apps and of the system.
  public static let version = EventTopic(rawValue: "version")
  /// Push tokens.
  public static let token = EventTopic(rawValue: "token")
}

/// Something that happened.
public struct IdentityEvent: Hashable, Sendable {
  /// Its number: later events have higher ones. Whoever keeps it can go on behind it.
  public let sequence: Int64
  /// What it is about.
  public let topic: EventTopic
  /// What happened: `created`, `changed`, `deleted` and others (identityd-protocol(7)).
  public let name: String
  /// The particulars by their names.
  public let attributes: [String: String]

  /// A particular; nil where it is not there.
  public subscript(_ name: String) -> String? { attributes[name] }

  /// When it happened.
  public var time: IdentityTime? { attributes["time"].flatMap { IdentityTime($0) } }

  init(_ received: ReceivedEvent) {
    sequence = received.sequence
    topic = EventTopic(rawValue: received.words.first?.description ?? "")
    name = received.words.dropFirst().first?.description ?? ""
    attributes = received.attributes.byName
  }
}

/// What whoever follows events is told.
public enum IdentityEventStep: Hashable, Sendable {
  /// Events come from here on: at the beginning, and again whenever the daemon was gone and is back.
  ///
  /// - Parameters:
  ///   - after: the number that the next event is behind; nil where that is not known.
  ///   - epoch: the word that tells this number from the same one of a store that was restored or replaced since. Keep both
  ///     to go on later.
  case following(after: Int64?, epoch: String?)
  /// Something happened.
  case event(IdentityEvent)
  /// The daemon is gone, for this reason, and is looked for until it is back. Nothing is lost by that.
  case interrupted(IdentityError)
  /// Events are missing and cannot be had any more, for this reason: what was kept of the daemon's state has to be asked
  /// for anew. What follows happens from now on.
  case gap(String)

  /// - Returns: nil where the daemon will not send the events.
  init?(_ step: EventFollower.Step, last: Int64?, epoch: Text?) {
    switch step {
    case .event(let event): self = .event(IdentityEvent(event))
    case .lost(let failure): self = .interrupted(IdentityError(failure))
    case .found: self = .following(after: last, epoch: epoch.map { "\($0)" })
    case .missed(let why): self = .gap(why.description)
    case .refused: return nil
    }
  }
}
