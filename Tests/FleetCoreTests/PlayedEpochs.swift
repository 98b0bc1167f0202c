import FleetCore
import FleetWire
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

  mutating func make(_ epoch: Epoch) {
    guard keys[epoch.number] == nil, let key = try? drawnSecret(&chance) else {
      return faults.append("epoch \(epoch.number) is made twice")
    }
    keys[epoch.number] = EpochKey(number: epoch.number, key: key)
  }

  mutating func enter(_ epoch: Epoch, _ device: Int, _ process: Int) {
    note("\(device) stores epoch \(epoch.number)")
    // The disk is ahead of the rules, so a kill in between loses nothing.
    if epoch.number > devices[device].disk.epoch.number { devices[device].disk.epoch = epoch }
    devices[device].disk.epochs.insert(epoch.number)
    let delay = Int.random(in: 0...50, using: &chance)
    schedule.add(.input(device: device, process: process, .entered(epoch)), after: delay)
  }

  mutating func unbox(_ message: SignedMessage, _ device: Int) -> UInt32? {
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
