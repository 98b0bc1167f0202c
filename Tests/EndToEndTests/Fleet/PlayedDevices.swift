import FleetSeal
import FleetWire
import Foundation
import IdentityCore
import TestSupport
import Testing

/// Devices that exist as messages at a broker alone. They know the key of an account.
struct PlayedDevices {
  /// A message on a topic.
  typealias Note = (topic: String, payload: [UInt8])

  private let seal: MessageSeal
  private let devices: [(uuid: IdentityCore.UUID, keys: DeviceKeys)]

  /// Makes devices in the account of another one.
  init(_ count: Int, in account: FleetUnderTest) throws {
    let item = try account.daemon.ask("item read service=identity-fleet account=root")
    let data = try #require(item.firstMatch(of: /^OK data=(\S+)/)).1
    var root = [UInt8](try #require(Data(base64Encoded: String(data))))
    let keys = try #require(SecretKey(consuming: &root).flatMap { AccountKeys(root: $0) })
    seal = MessageSeal(keys)
    var generator = SeededGenerator(13)
    devices = try (0..<count).map { _ in
      (
        UUID(high: generator.next(), low: generator.next()),
        try #require(SecretKey.random().flatMap { DeviceKeys(seed: $0) })
      )
    }
  }

  subscript(_ place: Int) -> IdentityCore.UUID { devices[place].uuid }

  /// Returns the topic of a device.
  func topic(of device: IdentityCore.UUID) -> MessageTopic { .device(seal.account.id, seal.account.tag(of: device)) }

  /// Returns the record of a device.
  ///
  /// - Parameter readableVersion: the version of envelopes that the device tells to read; 1 for a release that does not
  ///   tell.
  func record(_ place: Int, named name: String, counter: UInt64, readableVersion: UInt8 = 2) throws -> Note {
    let device = devices[place].uuid
    return try message(
      .record, about: device, by: device, signer: place, fields(place, name, readableVersion), counter: counter)
  }

  /// Returns the fields of a device's record.
  func fields(_ place: Int, _ name: String, _ readableVersion: UInt8 = 2) -> Fields {
    let keys = devices[place].keys
    return DeviceDescription(
      name: Text(name), signingKey: keys.signingKey, boxKey: keys.boxKey, joined: Timestamp(milliseconds: 1),
      home: Home(high: 1, low: 1), readableVersion: readableVersion
    ).fields
  }

  /// Returns a removal of a device, in the name of another one, that a third one signs.
  func removal(of device: IdentityCore.UUID, by author: IdentityCore.UUID, signer: Int) throws -> Note {
    let fields = Removal(.removed).fields(signingKey: devices[signer].keys.signingKey)
    return try message(.tombstone, about: device, by: author, signer: signer, fields, counter: 1_000)
  }

  /// Returns the content of a file with an invitation to a key that a device has made, in Base64.
  func invitation(by place: Int, to epoch: UInt32) throws -> String {
    let meeting = try #require(JoinCode.Meeting.random())
    let (device, keys) = devices[place]
    let body = Body(
      subject: device, generation: 1, counter: 0, run: Run(high: 1, low: 1), time: Timestamp(milliseconds: 1),
      author: device, fields: Fields())
    let soon = Timestamp(milliseconds: Int64(Date(timeIntervalSinceNow: 3_600).timeIntervalSince1970 * 1_000))
    let invitation = Invitation(
      name: "alice", root: seal.account.root, epoch: EpochKey(number: epoch, key: try #require(SecretKey.random())),
      rosterSize: 1, expiry: soon)
    let message = try #require(invitation.sealed(body, for: meeting, by: keys))
    return Data(meeting.copy() + message.bytes).base64EncodedString()
  }

  /// Returns a message that a device signs, which may be about any device and in the name of any device.
  ///
  /// - Parameter other: the device on whose topic the message is; by default the subject.
  func message(
    _ kind: MessageKind, about subject: IdentityCore.UUID, by author: IdentityCore.UUID, signer: Int, _ fields: Fields,
    generation: UInt32 = 1, counter: UInt64, on other: IdentityCore.UUID? = nil
  ) throws -> Note {
    let body = Body(
      subject: subject, generation: generation, counter: counter, run: Run(high: 1, low: 1),
      time: Timestamp(milliseconds: 1), author: author, fields: fields)
    let topic = topic(of: other ?? subject)
    let message = try #require(seal.seal(kind, body, epoch: 1, on: topic, by: devices[signer].keys))
    return (topic.text, message.bytes)
  }
}
