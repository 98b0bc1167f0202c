import FleetCore
import FleetWire
import IdentityCore
import TestSupport

@testable import FleetSeal

/// The keys of epochs. A box is random bytes, so that the same seed gives the same messages.
extension PlayedFleet {
  /// Makes a device rotate the key.
  mutating func rotate(at device: Int, without removed: Set<Int> = []) {
    note("\(device) rotates without \(removed.sorted())")
    feed(device, .rotate(without: Set(removed.map { devices[$0].disk.tag })))
  }

  /// Returns whether a device has the key of an epoch, or could open a box with it.
  func isReadable(_ epoch: UInt32, at device: Int) -> Bool {
    let own = devices[device].disk.keys.boxKey
    return devices[device].disk.epochs.contains(epoch) || boxes.values.contains { $0.to == own && $0.epoch == epoch }
  }

  private mutating func make(_ epoch: Epoch) {
    guard keys[epoch.number] == nil, let key = try? drawnSecret(&chance) else {
      return faults.append("epoch \(epoch.number) is made twice")
    }
    keys[epoch.number] = EpochKey(number: epoch.number, key: key)
    made.append(epoch)
  }

  /// Opens and stores the key of an epoch after a while, unless that fails.
  mutating func store(_ epoch: Epoch, from message: SignedMessage?, _ device: Int, _ process: Int) {
    if message.map({ unbox($0, device) != epoch.number }) ?? false || isUnruly && chance.once(in: 10) {
      note("\(device) cannot store epoch \(epoch.number)")
      let delay = Int.random(in: 0...50, using: &chance)
      return schedule.add(.input(device: device, process: process, .notEntered(epoch.number)), after: delay)
    }
    let delay = chance.once(in: 4) ? Int.random(in: 0...20_000, using: &chance) : Int.random(in: 0...50, using: &chance)
    schedule.add(.store(device: device, process: process, epoch), after: delay)
  }

  mutating func enter(_ epoch: Epoch, _ device: Int, _ process: Int) {
    note("\(device) stores epoch \(epoch.number)")
    if epoch.made == epoch.number { make(epoch) }
    // The disk is ahead of the rules, so a kill in between loses nothing.
    if epoch.number > devices[device].disk.epoch.number { devices[device].disk.epoch = epoch }
    devices[device].disk.epochs.insert(epoch.number)
    let delay = Int.random(in: 0...50, using: &chance)
    schedule.add(.input(device: device, process: process, .entered(epoch)), after: delay)
  }

  mutating func learn(_ number: UInt32, _ message: SignedMessage, _ device: Int) {
    guard unbox(message, device) == number, !(isUnruly && chance.once(in: 10)) else {
      return feed(device, .notLearned(number))
    }
    note("\(device) learns epoch \(number)")
    devices[device].disk.epochs.insert(number)
    devices[device].disk.learned.insert(number)
    if devices[device].disk.learned.count > 8, let least = devices[device].disk.learned.min() {
      devices[device].disk.learned.remove(least)
    }
    feed(device, .learned)
  }

  /// Makes a removed device publish what it can write with the keys that it has: its record, and, if it has nothing to
  /// lose, tombstones of the others and keys for them.
  mutating func haunt(_ device: Int, isReckless: Bool) {
    let disk = devices[device].disk
    note("\(device) haunts the others")
    for epoch in disk.epochs.sorted() {
      devices[device].disk.counter += 1
      let counter = devices[device].disk.counter
      publish(.record, about: device, counter, disk.description.fields, epoch, device)
      for other in devices.indices where isReckless && other != device {
        let removal = Removal(.removed).fields(signingKey: disk.keys.signingKey)
        publish(.tombstone, about: other, .max, removal, epoch, device)
        var fields = Fields()
        fields[.signingKey] = disk.keys.signingKey.bytes
        fields[.epoch] = (epoch + 0x1_0000).bigEndianBytes
        fields[.sealedBox] = [UInt8](repeating: 0, count: 80)
        publish(.grant, about: other, 0, fields, epoch, device)
      }
    }
  }

  private mutating func publish(
    _ kind: MessageKind, about subject: Int, _ counter: UInt64, _ fields: Fields, _ epoch: UInt32, _ author: Int
  ) {
    let disk = devices[subject].disk
    let topic: MessageTopic = kind == .grant ? .grant(account.id, disk.tag) : .device(account.id, disk.tag)
    let body = Body(
      subject: disk.device, generation: disk.generation, counter: counter, run: devices[author].run,
      time: Timestamp(milliseconds: Int64(schedule.now)), author: devices[author].disk.device, fields: fields)
    let nonce = (0..<3).flatMap { _ in chance.next().bigEndianBytes }
    guard let message = keys[epoch]?.seal(kind, body, on: topic, by: devices[author].disk.keys, nonce: nonce) else {
      return faults.append("device \(author) cannot haunt")
    }
    carry(broker.publish(topic.text, message.bytes, isRetained: true, now: schedule.now, &chance))
  }

  private mutating func unbox(_ message: SignedMessage, _ device: Int) -> UInt32? {
    guard let content = message.body.fields[.sealedBox].flatMap({ boxes[$0] }) else { return nil }
    return content.to == devices[device].disk.keys.boxKey ? content.epoch : nil
  }

  mutating func grant(_ draft: Draft, _ boxKey: PublicKey, _ device: Int, _ process: Int) {
    if isUnruly && chance.once(in: 10) { return feed(device, .notWritten(draft)) }
    guard case .exactly(let counter) = draft.counter, let number = draft.fields[.epoch] else { return }
    let box = (0..<10).flatMap { _ in chance.next().bigEndianBytes }
    boxes[box] = (boxKey, UInt32(bigEndian: number))
    guard let message = seal(draft, counter, device, on: .grant(account.id, draft.tag), box: box) else { return }
    schedule.add(
      .input(device: device, process: process, .wrote(draft.tag, message)),
      after: Int.random(in: 0...50, using: &chance))
  }
}
