import FleetCore
import FleetSeal
import FleetWire
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem

/// The ways into an account: to make one, to invite a device, and to join.
///
/// The keys are stored first and the name of the account last. Keys without an account are deleted at the next start, so
/// a change that was not completed leaves nothing.
struct Enrolment {
  /// How long an invitation in a file is valid, in milliseconds: a week.
  private static let fileValidity: Int64 = 604_800_000
  /// How long an invitation with a code is valid, in milliseconds: fifteen minutes, like its code in the rules.
  static let codeValidity: Int64 = 900_000

  let link: DaemonLink
  /// The name of the account that this device is in, with or without a fleet; nil for none.
  let present: Text?

  /// Makes an account.
  func create(_ name: Text) throws(DaemonFault) { try enter(name, try Self.made(SecretKey.random()), .first) }

  /// Joins an account by an invitation.
  ///
  /// - Returns: the name of the account.
  func join(_ invitation: Secret) throws(DaemonFault) -> Text {
    let (content, _) = try Self.opened(invitation)
    try enter(content)
    return content.name
  }

  /// Takes the present key of the account that this device is in from an invitation. Without it, a device that was away
  /// while the key was replaced may lack the password with which it would get the key.
  ///
  /// - Parameter fleet: the rules, which decide about the key as about one from the broker.
  /// - Returns: the name of the account.
  func renewKey(of account: Account, by invitation: Secret, _ fleet: Fleet) throws(DaemonFault) -> Text {
    let (content, message) = try Self.opened(invitation)
    guard try Self.made(AccountKeys(root: content.root)).id == account.seal.account.id else {
      throw .refused(
        code: .conflict,
        text: "this device is in the account \(account.name), and the invitation is to another one; leave the account "
          + "first with 'identityctl account leave'")
    }
    switch fleet.offered(by: message) {
    case .epoch(let next): try link.putEpochs(account.epochs.entering(next, content.epoch.key))
    case .reading(let number) where account.key(of: number) == nil && number != account.seal.account.firstEpoch.number:
      try link.putEpochs(account.epochs.learning(number, content.epoch.key))
    case .reading, .nothing:
      throw .refused(
        code: .conflict,
        text: "this device is in the account \(account.name) already, and the key of the invitation is not a later one")
    case .stranger:
      throw .refused(
        code: .conflict,
        text: "no device that this one knows as a member has signed the invitation; write another one on a device that "
          + "'identityctl devices' lists here")
    }
    return account.name
  }

  /// Opens an invitation of a file.
  private static func opened(
    _ invitation: Secret
  ) throws(DaemonFault) -> (content: Invitation, message: SignedMessage) {
    let meetingLength = JoinCode.Meeting.length
    var secret: [UInt8] = []
    secret.reserveCapacity(meetingLength)
    var sealed: [UInt8] = []
    invitation.withBytes { bytes in
      for index in bytes.indices {
        if index < meetingLength { secret.append(bytes[index]) } else { sealed.append(bytes[index]) }
      }
    }
    guard let meeting = JoinCode.Meeting(consuming: &secret) else { throw invalid }
    var message: SignedMessage
    do throws(Rejection) {
      message = try meeting.key.open(sealed, on: .invitation(meeting.rendezvous))
    } catch {
      throw invalid
    }
    guard let content = Invitation(taking: &message.body.fields) else { throw invalid }
    guard content.expiry.milliseconds > Clock.realtimeMilliseconds else {
      throw .refused(
        code: .conflict, text: "the invitation has expired, or the clock is wrong; ask for another invitation")
    }
    return (content, message)
  }

  /// Stores the keys of an invitation.
  func enter(_ content: Invitation) throws(DaemonFault) {
    let epoch = Epoch(number: content.epoch.number, former: 0)
    try enter(content.name, content.root, StoredEpochs.first.entering(epoch, content.epoch.key))
  }

  /// Returns the answer to an invitation, whose keys are stored; nil if there is not enough memory.
  func answer(in meeting: JoinCode.Meeting, _ run: Run) throws(DaemonFault) -> SignedMessage? {
    guard let seed = try link.key("device"), let keys = DeviceKeys(seed: seed),
      let own = try link.devices().first(where: { $0.isOwn })
    else { return nil }
    var fields = Fields()
    fields[.name] = HostName.deviceName(own.name).bytes
    fields[.signingKey] = keys.signingKey.bytes
    fields[.boxKey] = keys.boxKey.bytes
    let body = Body(
      subject: own.device, generation: 1, counter: 0, run: run,
      time: Timestamp(milliseconds: Clock.realtimeMilliseconds), author: own.device, fields: fields)
    return meeting.key.seal(.answer, body, on: .answer(meeting.rendezvous), by: keys)
  }

  private func enter(_ name: Text, _ root: SecretKey, _ epochs: StoredEpochs) throws(DaemonFault) {
    // Another account would remove the listed devices.
    guard present == nil || present == name else {
      throw .refused(
        code: .conflict,
        text: "this device is in the account \(present ?? ""); take it out first with 'identityctl account clear'")
    }
    // A member's keys, which could not be read at the start. One key alone is of a change that was not completed.
    if present != nil, try link.key("root") != nil, try link.key("device") != nil {
      throw .refused(code: .conflict, text: "this device is in the account already; try again in a minute")
    }
    try link.putKeyedAccount(name)
    try link.putKey("root", root)
    try link.putEpochs(epochs)
    try link.putKey("device", try Self.made(SecretKey.random()))
    try link.setAccount(name)
  }

  /// Makes an invitation for a file.
  ///
  /// - Parameter devices: the number of devices in the account.
  /// - Returns: the invitation, which the caller wipes, and the time of its expiry. A person with the invitation can join.
  static func invite(
    to account: Account, devices: Int
  ) throws(DaemonFault) -> (data: [UInt8], expiry: Timestamp) {
    let meeting = try made(JoinCode.Meeting.random())
    let (message, expiry) = try invitation(to: account, devices: devices, for: meeting, validity: fileValidity)
    var secret = meeting.copy()
    defer { secret.wipe() }
    return (secret + message.bytes, expiry)
  }

  /// Makes an invitation.
  static func invitation(
    to account: Account, devices: Int, for meeting: JoinCode.Meeting, validity: Int64
  ) throws(DaemonFault) -> (message: SignedMessage, expiry: Timestamp) {
    let now = Timestamp(milliseconds: Clock.realtimeMilliseconds)
    let expiry = Timestamp(milliseconds: now.milliseconds + validity)
    let device = account.present.device
    let body = Body(
      subject: device, generation: account.present.generation, counter: 0, run: account.present.run, time: now,
      author: device, fields: Fields())
    let invitation = Invitation(
      name: account.name, root: account.seal.account.root, epoch: account.presentKey, rosterSize: UInt32(devices),
      expiry: expiry, removed: account.epochs.present.removed)
    return (try made(invitation.sealed(body, for: meeting, by: account.keys)), expiry)
  }

  private static func made<Value>(_ value: Value?) throws(DaemonFault) -> Value {
    guard let value else { throw .refused(code: .unavailable, text: "there is not enough memory for the keys") }
    return value
  }

  private static var invalid: DaemonFault { .refused(code: .conflict, text: "this is not an invitation") }
}
