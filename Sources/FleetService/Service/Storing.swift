import FleetCore
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
  /// The indices of the last waiting messages of the devices.
  private var indices: [UUID: Int] = [:]
  /// The tombstones of earlier identifiers, by the later ones, until the records of these are here: together they are one
  /// change of the list. The bound of the roster bounds their number.
  private var successions: [UUID: SignedMessage] = [:]
  /// The later identifiers, by the earlier ones.
  private var successors: [UUID: UUID] = [:]
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
    held[device] == nil && !refused.contains(device) && successors[device] == nil
  }

  /// Adds a message. Returns whether enough of them wait.
  ///
  /// - Parameters:
  ///   - own: this device, which stays in the list under its present identifier.
  ///   - hasRecord: returns whether there is a record of a device, so that no tombstone waits for one.
  mutating func add(_ message: SignedMessage, own: UUID?, hasRecord: (UUID) -> Bool) -> Bool {
    let device = message.body.subject
    let removal = message.kind == .tombstone ? Removal(message.body.fields) : nil
    if let successor = removal?.successor, successor != device, device != own,
      !hasRecord(successor) || indices[successor].map({ waiting[$0].kind }) == .record
    {
      delay(message, until: successor)
    } else {
      release(device)
      append(message)
    }
    return waiting.count >= DaemonLink.mostTogether
  }

  /// Lets the tombstone of an earlier identifier wait for the record of the later one.
  private mutating func delay(_ tombstone: SignedMessage, until successor: UUID) {
    let device = tombstone.body.subject
    if let other = successions[successor] {
      if other.body.subject == device, Precedence(tombstone) <= Precedence(other) { return }
      successors[other.body.subject] = nil
      // A device has one earlier identifier. The tombstone of another one does not have to wait.
      if other.body.subject != device { append(other) }
    }
    release(device)
    successions[successor] = tombstone
    successors[device] = successor
  }

  /// Lets the tombstone of a device wait no longer, because a further message about the device is here.
  private mutating func release(_ device: UUID) {
    guard let successor = successors.removeValue(forKey: device) else { return }
    if let tombstone = successions.removeValue(forKey: successor) { append(tombstone) }
  }

  /// Appends a message. A record takes the place of an earlier one of its device, so a device that publishes without end
  /// costs identityd a change a turn.
  private mutating func append(_ message: SignedMessage) {
    let device = message.body.subject
    if let index = indices[device], message.kind == .record, waiting[index].kind == .record {
      if Precedence(waiting[index]) < Precedence(message) { waiting[index] = message }
    } else {
      indices[device] = waiting.count
      waiting.append(message)
    }
  }

  /// Adds the messages that could not be stored, and the tombstones whose successors have no record.
  mutating func retry(own: UUID?) {
    for tombstone in successions.values { append(tombstone) }
    (successions, successors) = ([:], [:])
    // The records first, so that each meets the tombstone of its device's earlier identifier.
    for isRecord in [true, false] {
      for message in held.values where (message.kind == .record) == isRecord {
        _ = add(message, own: own) { _ in true }
      }
    }
  }

  /// Stores the messages that wait.
  mutating func store(over link: DaemonLink) throws(DaemonFault) -> [Outcome] {
    var messages: [(message: SignedMessage, former: UUID?)] = []
    for message in waiting {
      let succession = message.kind == .record ? successions.removeValue(forKey: message.body.subject) : nil
      if let succession { successors[succession.body.subject] = nil }
      messages.append((message, succession?.body.subject))
      // The tombstone second: it would remove the earlier identifier from the list.
      if let succession { messages.append((succession, nil)) }
    }
    (waiting, indices) = ([], [:])
    var outcomes: [Outcome] = []
    for ((message, former), fault) in zip(messages, try link.store(messages)) {
      let device = message.body.subject
      held[device] = nil
      refused.remove(device)
      guard case .refused(let code, let text)? = fault else { continue }
      guard former == nil else {
        // The refusal may be about the earlier identifier only.
        append(message)
        continue
      }
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
