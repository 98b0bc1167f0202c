import FleetCore
import FleetSeal
import FleetWire
import IdentityCore
import IdentityWire
import LinuxSystem

/// The codes of this device: one with which it joins an account, and one with which it invites a newcomer.
struct Meetings {
  /// The end of an attempt to join, or its progress.
  enum Progress {
    case trying, confirmed, unconfirmed
    case failed(String)

    /// The word in `fleet status`.
    var word: String {
      switch self {
      case .trying: "trying"
      case .confirmed: "confirmed"
      case .unconfirmed: "unconfirmed"
      case .failed(let reason): reason
      }
    }
  }

  /// The state of the last invitation.
  enum InvitationState {
    case open, expired
    /// The device with this name has used the code.
    case used(String)
  }

  private let log: ServiceLog
  /// The topics and the key of the attempt to join; nil without an attempt.
  private(set) var joining: JoinCode.Meeting?
  /// The topics and the key of the present invitation, or of the last one; nil without one.
  private(set) var inviting: JoinCode.Meeting?
  /// Whether the keys of the attempt to join are stored, so that this device is a member without a confirmation.
  private(set) var isAnswering = false
  /// The progress of the last attempt to join; nil without one.
  private(set) var progress: Progress?
  /// The state of the present invitation, or of the last one; nil without one.
  private(set) var invitation: InvitationState?
  /// The device that has used the code of an invitation after another one had, until the key of the account is replaced;
  /// nil if none has.
  private(set) var intruder: NamedDevice?
  /// The last invitation that the broker showed to this device, and its content.
  private var shown: (message: SignedMessage, content: Invitation)?

  /// The reason why a code is of no use. A code that was used, or that has expired, leaves nothing at the broker.
  static let notInvited =
    "the broker has no invitation for this code; compare the code, which may have been used or have expired, and the "
    + "brokers of both devices"

  init(_ log: ServiceLog) { self.log = log }

  /// Starts an attempt to join.
  mutating func join(_ meeting: JoinCode.Meeting) { (joining, progress, shown) = (meeting, .trying, nil) }

  /// Notes that the keys are stored.
  mutating func answer() { isAnswering = true }

  /// Ends the attempt to join.
  mutating func end(_ progress: Progress) {
    (joining, self.progress, shown, isAnswering) = (nil, progress, nil, false)
  }

  /// Starts an invitation; nil ends what is left of one.
  mutating func invite(_ meeting: JoinCode.Meeting?) { (inviting, invitation) = (meeting, meeting.map { _ in .open }) }

  /// Ends the invitation, whose code nobody has used. The topics and the key stay, to empty the topics.
  mutating func expire() {
    invitation = .expired
    log.note("the invitation has ended, and nobody has used its code")
  }

  /// Ends the invitation by an answer. The topics and the key stay, to notice a second newcomer.
  mutating func note(newcomer answer: SignedMessage) {
    let newcomer = NamedDevice(of: answer)
    invitation = .used(newcomer.name)
    log.note("\(newcomer.name) (\(newcomer.identifier)) joins with the code")
  }

  /// Notes that another device than the newcomer has used the code of the invitation.
  mutating func note(intruder answer: SignedMessage) {
    let intruder = NamedDevice(of: answer)
    self.intruder = intruder
    log.warn(
      "\(intruder.name) (\(intruder.identifier)) has used the code, too, and has the keys of the account; "
        + "if it is not yours, see 'identityctl account rotate'")
  }

  /// Forgets the device that has used a code after another one had, because the key of the account was replaced.
  mutating func forgetIntruder() { intruder = nil }

  /// Forgets the code of the last invitation, of which the broker has nothing any more.
  mutating func forgetCode() { inviting = nil }

  /// The rows about the codes in `fleet status`.
  var rows: [(name: String, value: String)] {
    var rows: [(name: String, value: String)] = progress.map { [("join", $0.word)] } ?? []
    switch invitation {
    case .open: rows.append(("invitation", "open"))
    case .expired: rows.append(("invitation", "expired"))
    case .used(let name): rows += [("invitation", "used"), ("newcomer", name)]
    case nil: break
    }
    if let intruder { rows.append(("second-newcomer", "\(intruder)")) }
    return rows
  }

  /// Returns the key for a topic; nil if the topic belongs to none of the codes.
  func key(for topic: MessageTopic) -> EpochKey? {
    switch topic {
    case .invitation(let rendezvous), .answer(let rendezvous):
      [joining, inviting].compactMap { $0 }.first { $0.rendezvous == rendezvous }?.key
    case .device, .grant, .presence, .who, .digest, .report, .tokens, .feedback: nil
    }
  }

  /// Opens a message on a topic of one of the codes, and takes the keys out of an invitation.
  mutating func open(_ bytes: [UInt8], with key: EpochKey, on topic: MessageTopic) throws(Rejection) -> SignedMessage {
    var message = try key.open(bytes, on: topic)
    guard message.kind == .invitation else { return message }
    guard let content = Invitation(taking: &message.body.fields) else { throw .fields }
    if joining != nil { shown = (message, content) }
    return message
  }

  /// Returns the content of an invitation that the broker showed; nil if it has shown another one since.
  func content(of invitation: SignedMessage) -> Invitation? { shown?.message == invitation ? shown?.content : nil }
}

extension Service {
  /// Invites a newcomer with a code. Returns the time of its expiry.
  func invite(_ meeting: JoinCode.Meeting) throws(DaemonFault) -> Timestamp {
    guard let account = affiliation.account else {
      throw .refused(code: .conflict, text: "this device is in no account of the fleet")
    }
    let (message, expiry) = try Enrolment.invitation(
      to: account, devices: rules.fleet.roster.devices, for: meeting, validity: Enrolment.codeValidity)
    // It may end an earlier invitation.
    try take(.invite(message, meeting.rendezvous))
    meetings.invite(meeting)
    return expiry
  }

  /// Stores the keys of an invitation, and answers it.
  func accept(_ invitation: SignedMessage) throws(DaemonFault) {
    guard let link = daemon.link, let meeting = meetings.joining, let content = meetings.content(of: invitation) else {
      return notJoined("the broker shows several invitations for this code")
    }
    let enrolment = Enrolment(link: link, present: affiliation.name)
    do throws(DaemonFault) {
      try enrolment.enter(content)
      meetings.answer()
      if let answer = try enrolment.answer(in: meeting, daemon.run) { return rules.queue(.answered(answer)) }
    } catch .refused(_, let text) {
      guard meetings.isAnswering else { return notJoined(text) }
    }
    // This device is a member, and cannot tell that to the inviting one.
    meetings.end(.unconfirmed)
    daemon.requestStart()
  }

  /// Ends the attempt to join.
  func notJoined(_ reason: String) {
    log.warn("not joined: \(reason)")
    meetings.end(.failed(reason))
    daemon.requestStart()
  }

  /// Notes that the rules have ended an attempt to join.
  func notJoined(_ failure: JoinFailure) {
    switch failure {
    case .expired: notJoined("the invitation has expired, or the clock is wrong; ask for another code")
    case .used: notJoined("another device has used the code; ask for another code")
    case .notInvited: notJoined(Meetings.notInvited)
    case .notConnected: notJoined("no broker took this device; see Broker= in identity-fleet.conf(5)")
    case .notStored: notJoined("identityd did not store the keys; see 'identityctl check'")
    }
  }
}
