import FleetCore
import FleetWire
import IdentityCore
import TestSupport
import Testing

@testable import FleetSeal

/// Invitations by code, and newcomers.
extension PlayedFleet {
  mutating func tell(_ device: Int, _ text: String) {
    note("\(device) says: \(text)")
    devices[device].told.append(text)
  }

  func name(_ message: SignedMessage) -> String {
    String(decoding: message.body.fields[.name] ?? [], as: UTF8.self)
  }

  /// Makes a device invite a newcomer.
  mutating func invite(at device: Int) throws {
    let meeting = JoinCode.Meeting(rendezvous: drawn(&chance), key: try drawnSecret(&chance))
    self.meeting = meeting
    let disk = devices[device].disk
    let epoch = try #require(keys[disk.epoch.number])
    let invitation = Invitation(
      name: "home", root: account.root, epoch: epoch, rosterSize: UInt32(devices.count),
      expiry: Timestamp(milliseconds: Int64(schedule.now) + 900_000))
    let body = body(of: device, Fields())
    let sealed = try #require(invitation.sealed(body, for: meeting, by: disk.keys))
    note("\(device) invites")
    feed(device, .invite(sealed, meeting.rendezvous))
  }

  /// Adds a device that joins with the code of the last invitation.
  mutating func addNewcomer(_ name: Text) throws -> Int {
    let device: UUID = drawn(&chance)
    let keys = try #require(DeviceKeys(seed: try drawnSecret(&chance)))
    var newcomer = PlayedDevice(
      PlayedDisk(device: device, tag: account.tag(of: device), keys: keys, name: name, home: drawn(&chance)))
    newcomer.isMember = false
    devices.append(newcomer)
    let place = devices.count - 1
    devices[place].process = number()
    devices[place].fleet = Fleet(settings)
    note("\(place) is a newcomer")
    guard let meeting else { return place }
    feed(place, .started(.newcomer(meeting.rendezvous, at: Timestamp(milliseconds: Int64(schedule.now)))))
    return place
  }

  private func body(of device: Int, _ fields: Fields) -> Body {
    let disk = devices[device].disk
    return Body(
      subject: disk.device, generation: 1, counter: 1, run: devices[device].run,
      time: Timestamp(milliseconds: Int64(schedule.now)), author: disk.device, fields: fields)
  }

  /// Stores the keys of an invitation, and writes the answer.
  mutating func accept(_ invitation: SignedMessage, _ device: Int, _ process: Int) {
    guard let epoch = invitation.body.fields[.epoch].map({ UInt32(bigEndian: $0) }) else {
      return faults.append("device \(device) is invited to no epoch")
    }
    devices[device].disk.epoch = Epoch(number: epoch, former: 0)
    devices[device].disk.epochs.insert(epoch)
    devices[device].isMember = true
    let nonce = (0..<3).flatMap { _ in chance.next().bigEndianBytes }
    guard let meeting,
      let answer = meeting.key.seal(
        .answer, body(of: device, devices[device].disk.description.answerFields), on: .answer(meeting.rendezvous),
        by: devices[device].disk.keys, nonce: nonce)
    else { return faults.append("device \(device) cannot answer") }
    schedule.add(.input(device: device, process: process, .answered(answer)), after: 20)
  }

  /// Starts a newcomer as a member.
  mutating func join(_ device: Int, isConfirmed: Bool) {
    tell(device, isConfirmed ? "joined" : "joined, unconfirmed")
    kill(device)
    start(device)
  }
}

extension DeviceDescription {
  /// The fields of an answer to an invitation.
  var answerFields: Fields {
    var fields = Fields()
    fields[.name] = name.bytes
    fields[.signingKey] = signingKey.bytes
    fields[.boxKey] = boxKey.bytes
    return fields
  }
}
