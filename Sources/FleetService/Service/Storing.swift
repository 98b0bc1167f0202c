import FleetWire
import IdentityCore
import IdentityWire

/// The messages on their way to identityd, which stores several of them together.
struct Storing {
  /// The outcome of a message that was not stored.
  enum Outcome {
    /// There is no room for another device.
    case beyondBound
    /// identityd can store nothing at present, for this reason. The message is tried again.
    case held(String)
    /// identityd refuses the message for this reason.
    case refused(String)
  }

  private var waiting: [SignedMessage] = []
  /// The messages that could not be stored, by their devices. The bound of the roster bounds their number.
  private var held: [UUID: SignedMessage] = [:]
  /// The devices whose last message was refused. The bound of the roster bounds their number.
  private var refused: Set<UUID> = []

  /// The number of messages that could not be stored.
  var heldCount: Int { held.count }

  /// Whether messages wait.
  var hasWaiting: Bool { !waiting.isEmpty }

  /// Returns whether the last message about a device is stored.
  func isStored(_ device: UUID) -> Bool { held[device] == nil && !refused.contains(device) }

  /// Adds a message. Returns whether enough of them wait.
  mutating func add(_ message: SignedMessage) -> Bool {
    waiting.append(message)
    return waiting.count >= DaemonLink.mostTogether
  }

  /// Adds the messages that could not be stored.
  mutating func retry() { waiting += held.values }

  /// Stores the messages that wait.
  mutating func store(over link: DaemonLink) throws(DaemonFault) -> [Outcome] {
    let messages = waiting
    waiting = []
    var outcomes: [Outcome] = []
    for (message, fault) in zip(messages, try link.store(messages)) {
      let device = message.body.subject
      held[device] = nil
      refused.remove(device)
      guard case .refused(let code, let text)? = fault else { continue }
      switch code {
      case .conflict: break  // A stored message outranks this one.
      case .limit:
        refused.insert(device)
        outcomes.append(.beyondBound)
      case .noSpace, .readOnly, .unavailable, .internal, .unknown, .busy:
        held[device] = message
        outcomes.append(.held(text))
      default:
        refused.insert(device)
        outcomes.append(.refused(text))
      }
    }
    return outcomes
  }
}
