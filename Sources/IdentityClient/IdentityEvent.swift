import IdentityCore

/// The topic of an event. A later daemon may have topics that are not named here.
public struct EventTopic: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  /// The name of the topic in the protocol.
  public let rawValue: String
  /// Creates a topic from its name in the protocol.
  public init(rawValue: String) { self.rawValue = rawValue }
  /// The name of the topic.
  public var description: String { rawValue }

  /// Changes of the device identifier.
  public static let device = EventTopic(rawValue: "device")
  /// Changes of installation identifiers.
  public static let installation = EventTopic(rawValue: "installation")
  /// Changes of vendor identifiers.
  public static let vendor = EventTopic(rawValue: "vendor")
  /// Installation and uninstallation of apps.
  public static let app = EventTopic(rawValue: "app")
  /// Changes of the account's list of devices.
  public static let devices = EventTopic(rawValue: "devices")
  /// Changes of the account's name.
  public static let account = EventTopic(rawValue: "account")
  /// Changes of items. No event contains a secret.
  public static let item = EventTopic(rawValue: "item")
  /// Changes of the versions of apps and of the system.
  public static let version = EventTopic(rawValue: "version")
  /// Changes of push tokens. No event contains a token.
  public static let token = EventTopic(rawValue: "token")
}

/// An event: a change that the daemon has committed.
public struct IdentityEvent: Hashable, Sendable {
  /// The sequence number. Later events have higher numbers.
  ///
  /// A program that stores the number can pass it as `since` later, to continue after this event.
  public let sequence: Int64
  /// The topic.
  public let topic: EventTopic
  /// The kind of change: `created`, `changed`, `deleted` and others (identityd-protocol(7), Event lines).
  public let name: String
  /// The values of the attributes by name (identityd-protocol(7), Event lines).
  public let attributes: [String: String]

  /// The value of an attribute; nil if the attribute is missing.
  public subscript(_ name: String) -> String? { attributes[name] }

  /// The time of the event; nil if the daemon sent none in the expected form.
  public var time: IdentityTime? { attributes["time"].flatMap { IdentityTime($0) } }

  init(_ received: ReceivedEvent) {
    sequence = received.sequence
    topic = EventTopic(rawValue: received.words.first?.description ?? "")
    name = received.words.dropFirst().first?.description ?? ""
    attributes = received.attributes.byName
  }
}

/// A step in following events.
public enum IdentityEventStep: Hashable, Sendable {
  /// The events begin here. A loop gets this step at its beginning, and again after each interruption and each gap.
  ///
  /// - Parameters:
  ///   - after: The sequence number after which the events begin; nil if the number is unknown.
  ///   - epoch: The epoch of the number. A store that was restored or replaced has another epoch, even at the same
  ///     number. Store number and epoch to continue later.
  case following(after: Int64?, epoch: String?)
  /// An event.
  case event(IdentityEvent)
  /// The daemon is gone, for this reason. The client tries to reconnect until the daemon is back.
  ///
  /// No event is lost by the interruption itself.
  case interrupted(IdentityError)
  /// Events are missing for good, for this reason. State that was built from events must be read anew.
  ///
  /// The loop continues with events from now on.
  case gap(String)

  /// - Returns: Nil if the daemon refuses to send the events.
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
