import FleetCore
import FleetSeal
import FleetWire
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem

/// The answers to requests of admins.
struct Answering {
  /// The number of devices in one answer with proof keys, which has 230 KB at most.
  private static let proofKeysPage = 256

  /// A consequence of a request that the service draws.
  enum Consequence {
    case none
    /// The state has to be read again.
    case start
    /// These bytes are shown, too.
    case show(Secret)
    /// The rules take an input.
    case take(Input)
    /// This device tries to join an account with a code.
    case join(JoinCode.Meeting)
    /// This device invites a newcomer with a code.
    case invite(JoinCode.Meeting)
    /// The account gets another key, and these devices are removed.
    case rotate(without: Set<DeviceTag>)
    /// The answer needs neither identityd nor the rules.
    case askAside
  }

  let link: DaemonLink
  let account: Account?
  /// Whether this device has stored the keys of an account, and waits for the confirmation of the inviting one.
  let isAnswering: Bool
  /// The name of the account in identityd; nil for none.
  let name: Text?
  /// The rules.
  let fleet: Fleet
  /// Whether this device shows the broker the password of its account.
  let hasPassword: Bool
  /// Whether this device uses a former password of its account.
  let hasFormerPassword: Bool

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
      var (data, expiry) = try Enrolment.invite(to: try requireAccount(), devices: fleet.roster.devices)
      defer { data.wipe() }
      reply.ok()
      reply.attribute("expires", .time(expiry))
      if hasFormerPassword { reply.attribute("password", .string("former")) }
      return (reply, .show(Secret(data.span)))
    case .leave:
      _ = try requireAccount()
      reply.ok()
      if fleet.phase != .live { reply.attribute("pending", .yesOrNo(true)) }
      return (reply, .take(.leave))
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
      return (.done, .take(.sync))
    case .proofKeys(let last):
      _ = try requireAccount()
      return (proofKeys(after: last), .none)
    case .who:
      try requirePresence()
      return (.done, .take(.askWho))
    case .peers: return (peers, .none)
    case .readReports, .reports, .tryBrokers, .triedBrokers: return (.done, .askAside)
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

  // MARK: Other devices

  /// Returns the public proof keys of the next devices of the account, each with the key that signs the device's record.
  private func proofKeys(after last: UUID?) -> Reply {
    let published = fleet.roster.records.compactMap { record -> (record: SignedMessage, keys: PublishedKeys)? in
      guard last.map({ $0 < record.body.subject }) ?? true else { return nil }
      return PublishedKeys(record.body.fields).map { (record, $0) }
    }
    let page = published.sorted { $0.record.body.subject < $1.record.body.subject }.prefix(Self.proofKeysPage)
    return Reply.rows(Array(page)) { entry, reply in
      let (record, keys) = entry
      reply.word(.uuid(record.body.subject))
      reply.attribute("name", record.body.fields[.name].map { .text(Text(trusted: $0)) })
      reply.attribute("signer", .text(Base64Text.encoded(record.signer.bytes)))
      reply.attribute("issuer", .text(keys.issuer))
      reply.attribute("points", .text(Base64Text.encoded(keys.points.flatMap(\.self))))
    }
  }

  /// Returns the other devices that are connected.
  private var peers: Reply {
    let records = fleet.present.compactMap { fleet.roster[$0] }.sorted { "\($0.body.subject)" < "\($1.body.subject)" }
    return Reply.rows(records) { (record: SignedMessage, reply: inout Reply) in
      reply.word(.uuid(record.body.subject))
      reply.attribute("name", record.body.fields[.name].map { .text(Text(trusted: $0)) })
    }
  }

  private func requirePresence() throws(DaemonFault) {
    guard fleet.phase == .live else {
      throw .refused(code: .conflict, text: "this device is not connected; see 'identityctl fleet status'")
    }
    guard fleet.hasPresence else {
      throw .refused(
        code: .conflict,
        text:
          "devices do not tell each other that they are connected, because of Presence=no, or of more than 64 devices")
    }
  }
}
