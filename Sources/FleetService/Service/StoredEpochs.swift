package import FleetCore
package import FleetSeal
import FleetWire
import LinuxSystem

/// The present epoch of this device, and the keys of epochs after the first one. They are one item, so that an epoch and
/// its key are stored together.
package struct StoredEpochs: Sendable {
  /// The greatest number of keys. The oldest one has to go, and with it the way back to a device that has been away since.
  package static let mostKeys = 64
  /// The greatest number of keys for reading only. Of more, those with the greatest numbers stay, as in the rules.
  package static let mostLearned = 8

  /// The epoch in which this device writes.
  package let present: Epoch
  /// The keys, oldest first.
  package let keys: [EpochKey]

  /// The numbers of the keys for reading only.
  package let learned: Set<UInt32>

  /// The state of an account that has never rotated its key.
  package static let first = StoredEpochs(present: .first, keys: [], learned: [])

  private init(present: Epoch, keys: [EpochKey], learned: Set<UInt32>) {
    self.present = present
    self.keys = keys
    self.learned = learned
  }

  /// Returns the state with another present epoch, and its key.
  package func entering(_ epoch: Epoch, _ key: SecretKey) -> StoredEpochs {
    adding(EpochKey(number: epoch.number, key: key), present: epoch, learned: learned.subtracting([epoch.number]))
  }

  /// Returns the state with a key for reading only.
  package func learning(_ number: UInt32, _ key: SecretKey) -> StoredEpochs {
    adding(EpochKey(number: number, key: key), present: present, learned: learned.union([number]))
  }

  private func adding(_ key: EpochKey, present: Epoch, learned: Set<UInt32>) -> StoredEpochs {
    var (keys, learned) = (keys.filter { $0.number != key.number } + [key], learned)
    if learned.count > Self.mostLearned, let least = learned.min() {
      learned.remove(least)
      keys.removeAll { $0.number == least }
    }
    if keys.count > Self.mostKeys, let oldest = keys.firstIndex(where: { $0.number != present.number }) {
      learned.remove(keys.remove(at: oldest).number)
    }
    return StoredEpochs(present: present, keys: keys, learned: learned)
  }

  /// Returns the stored form: the length of the epoch in two bytes, the epoch, and each key behind its number and
  /// a byte that tells whether it is for reading only. The caller wipes it.
  package func copy() -> [UInt8] {
    let epoch = present.bytes
    var bytes: [UInt8] = []
    // A growing array would leave copies in memory.
    bytes.reserveCapacity(2 + epoch.count + keys.count * Self.keyLength)
    bytes += UInt16(epoch.count).bigEndianBytes + epoch
    for key in keys {
      bytes += key.number.bigEndianBytes + [learned.contains(key.number) ? 1 : 0]
      var secret = key.key.copy()
      bytes += secret
      secret.wipe()
    }
    return bytes
  }

  /// Reads the stored form, and wipes it; nil for other bytes, and without memory.
  package init?(consuming bytes: inout [UInt8]) {
    defer { bytes.wipe() }
    guard bytes.count >= 2 else { return nil }
    let end = 2 + Int(bytes[0]) << 8 + Int(bytes[1])
    guard bytes.count >= end, (bytes.count - end).isMultiple(of: Self.keyLength),
      let present = Epoch(bytes: Array(bytes[2..<end]))
    else { return nil }
    var keys: [EpochKey] = []
    var learned: Set<UInt32> = []
    for start in stride(from: end, to: bytes.count, by: Self.keyLength) {
      var secret = Array(bytes[(start + 5)..<(start + Self.keyLength)])
      guard let key = SecretKey(consuming: &secret), bytes[start + 4] <= 1 else { return nil }
      let number = UInt32(bigEndian: bytes[start..<start + 4])
      keys.append(EpochKey(number: number, key: key))
      if bytes[start + 4] == 1 { learned.insert(number) }
    }
    guard keys.count <= Self.mostKeys, present == .first || keys.contains(where: { $0.number == present.number }) else {
      return nil
    }
    self.init(present: present, keys: keys, learned: learned)
  }

  private static let keyLength = 5 + SecretKey.length
}
