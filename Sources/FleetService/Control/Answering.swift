import FleetCore
import FleetSeal
import FleetWire
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem

/// The answers to requests of admins.
struct Answering {
  /// A consequence of a request that the service draws.
  enum Consequence {
    case none
    /// The state has to be read again.
    case start
    /// These bytes are shown, too.
    case show(Secret)
    /// This device leaves its account.
    case leave
    /// This device tries to join an account with a code.
    case join(JoinCode.Meeting)
    /// This device invites a newcomer with a code.
    case invite(JoinCode.Meeting)
    /// The account gets another key, and these devices are removed.
    case rotate(without: Set<DeviceTag>)
    /// The messages at the broker are read.
    case sync
    /// The service answers by itself.
    case other
  }

  let link: DaemonLink
  let account: Account?
  /// Whether this device has stored the keys of an account, and waits for the confirmation of the inviting one.
  let isAnswering: Bool
  /// The name of the account in identityd; nil for none.
  let name: Text?
  let run: Run
  /// The rules.
  let fleet: Fleet
  /// Whether this device shows the broker the password of its account.
  let hasPassword: Bool
  /// Whether this device uses a former password of its account.
  let hasFormerPassword: Bool
  /// The state of the service.
  let rows: [(name: String, value: String)]

  /// Carries out a request.
  func carryOut(_ request: ControlRequest) throws(DaemonFault) -> (Reply, Consequence) {
    var reply = Reply()
    switch request {
    case .create(let name):
      try requireNoAccount()
      try Enrolment(link: link, present: name).create(name)
      return (.done, .start)
    case .join(let invitation):
      let enrolment = Enrolment(link: link, present: name)
      let name: Text
      if let account, !isAnswering {
        name = try enrolment.renewKey(of: account, by: invitation, fleet)
      } else {
        try requireNoAccount()
        name = try enrolment.join(invitation)
      }
      reply.ok()
      reply.attribute("account", .text(name))
      return (reply, .start)
    case .joinWithCode(let secret):
      try requireNoAccount()
      return (.done, .join(try meeting(secret)))
    case .inviteWithCode(let secret):
      _ = try requireAccount()
      let meeting = try meeting(secret)
      reply.ok()
      return (reply, .invite(meeting))
    case .invite:
      var (data, expiry) = try Enrolment.invite(to: try requireAccount(), run, devices: fleet.roster.devices)
      defer { data.wipe() }
      reply.ok()
      reply.attribute("expires", .time(expiry))
      if hasFormerPassword { reply.attribute("password", .string("former")) }
      return (reply, .show(Secret(data.span)))
    case .leave:
      _ = try requireAccount()
      reply.ok()
      if fleet.phase != .live { reply.attribute("pending", .yesOrNo(true)) }
      return (reply, .leave)
    case .rotate(let removed):
      reply.ok()
      if hasPassword { reply.attribute("password", .string("replaced")) }
      return (reply, .rotate(without: try tags(of: removed)))
    case .sync:
      _ = try requireAccount()
      guard fleet.phase == .live else {
        throw .refused(
          code: .unavailable, text: "the broker has not taken this device yet; see 'identityctl fleet status'")
      }
      return (.done, .sync)
    case .proofKeys:
      _ = try requireAccount()
      return (.done, .other)
    case .who, .peers, .readReports, .reports, .tryBrokers, .triedBrokers: return (.done, .other)
    case .status:
      for (name, value) in rows {
        reply.row()
        reply.attribute(name, .string(value))
      }
      reply.ok()
    case .credentials(let isPrevious):
      let account = try requireAccount()
      let passwords = account.passwordEpochs.map(account.seal.account.brokerPassword)
      guard !isPrevious || passwords.count > 1 else {
        throw .refused(code: .notFound, text: "the key of the account was never replaced, so it has one password only")
      }
      for password in passwords.dropFirst() where isPrevious {
        reply.row()
        reply.attribute("password", .string(password))
      }
      reply.ok()
      reply.attribute("user", .string("\(account.seal.account.id)"))
      if !isPrevious { reply.attribute("password", .string(passwords[0])) }
    }
    return (reply, .none)
  }

  /// Returns the tags of devices, each of which is another one of the account.
  private func tags(of devices: [UUID]) throws(DaemonFault) -> Set<DeviceTag> {
    let account = try requireAccount()
    var tags: Set<DeviceTag> = []
    for device in devices {
      let tag = account.seal.account.tag(of: device)
      guard device != account.present.device else {
        throw .refused(code: .conflict, text: "\(device) is this device; use 'identityctl account leave'")
      }
      guard fleet.roster[tag]?.kind == .record else {
        throw .refused(code: .notFound, text: "\(device) is not in the account")
      }
      tags.insert(tag)
    }
    return tags
  }

  private func meeting(_ secret: Secret) throws(DaemonFault) -> JoinCode.Meeting {
    var bytes = secret.copy()
    guard let meeting = JoinCode.Meeting(consuming: &bytes) else {
      throw .refused(code: .conflict, text: "these are not the bytes of a code, or there is not enough memory for them")
    }
    return meeting
  }

  private func requireAccount() throws(DaemonFault) -> Account {
    if let account { return account }
    guard let name else { throw .refused(code: .conflict, text: "this device is in no account of the fleet") }
    throw .refused(
      code: .conflict,
      text: "this device is in the account \(name), of which the fleet has no keys; join it with 'identityctl account "
        + "join' and a code from another device of the account")
  }

  private func requireNoAccount() throws(DaemonFault) {
    guard !isAnswering else {
      throw .refused(code: .conflict, text: "this device is joining an account; see 'identityctl fleet status'")
    }
    guard let account else { return }
    throw .refused(
      code: .conflict,
      text: "this device is in the account \(account.name); leave it first with 'identityctl account leave'")
  }
}
