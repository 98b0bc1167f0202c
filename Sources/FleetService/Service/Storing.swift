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

  private(set) var waiting: [SignedMessage] = []
  /// The tombstones of earlier identifiers, by the later ones, until the records of these are here: together they are one
  /// change of the list. The bound of the roster bounds their number.
  private var successions: [UUID: SignedMessage] = [:]
  /// The messages that could not be stored, by their devices. The bound of the roster bounds their number.
  private var held: [UUID: SignedMessage] = [:]
  /// The devices whose last message was refused. The bound of the roster bounds their number.
  private var refused: Set<UUID> = []

  /// The number of messages that could not be stored.
  var heldCount: Int { held.count }

  /// Whether messages wait.
  var hasWaiting: Bool { !waiting.isEmpty }

  /// Whether tombstones wait for the records of their successors.
  var awaitsSuccessors: Bool { !successions.isEmpty }

  /// Returns whether the last message about a device is stored.
  func isStored(_ device: UUID) -> Bool {
    held[device] == nil && !refused.contains(device) && !successions.values.contains { $0.body.subject == device }
  }

  /// Adds a message. Returns whether enough of them wait.
  ///
  /// A record replaces an earlier one of its device that waits. So a device that publishes without end costs
  /// identityd a change a turn. A new generation is another membership, of which each has its events.
  ///
  /// - Parameter hasRecord: returns whether there is a record of a device.
  mutating func add(_ message: SignedMessage, hasRecord: (UUID) -> Bool) -> Bool {
    let former = waiting.firstIndex { other in
      other.body.subject == message.body.subject && other.body.generation == message.body.generation
        && (other.kind, message.kind) == (.record, .record)
    }
    if message.kind == .tombstone, let successor = Removal(message.body.fields)?.successor,
      !hasRecord(successor) || waiting.contains(where: { $0.kind == .record && $0.body.subject == successor })
    {
      // A device has one earlier identifier. Another tombstone that names it does not have to wait.
      if let other = successions.updateValue(message, forKey: successor) { waiting.append(other) }
    } else if let former {
      // One that could not be stored may be older than the one that waits.
      if waiting[former].body.counter < message.body.counter { waiting[former] = message }
    } else {
      waiting.append(message)
    }
    return waiting.count >= DaemonLink.mostTogether
  }

  /// Adds the messages that could not be stored, and the tombstones whose successors have no record.
  mutating func retry() {
    waiting += successions.values
    successions = [:]
    // The records first, so that each meets the tombstone of its device's earlier identifier.
    for isRecord in [true, false] {
      for message in held.values where (message.kind == .record) == isRecord { _ = add(message) { _ in true } }
    }
  }

  /// Stores the messages that wait.
  mutating func store(over link: DaemonLink) throws(DaemonFault) -> [Outcome] {
    var messages: [(message: SignedMessage, former: UUID?)] = []
    for message in waiting {
      let succession = message.kind == .record ? successions.removeValue(forKey: message.body.subject) : nil
      messages.append((message, succession?.body.subject))
      // The tombstone second: it would remove the earlier identifier from the list.
      if let succession { messages.append((succession, nil)) }
    }
    waiting = []
    var outcomes: [Outcome] = []
    for ((message, _), fault) in zip(messages, try link.store(messages)) {
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
