import FleetCore
import FleetWire
import IdentityCore
import TestSupport
import Testing

@testable import FleetSeal

/// The stored state of a device, which outlives its process.
struct PlayedDisk {
  let device: UUID
  let tag: DeviceTag
  var keys: DeviceKeys
  var generation: UInt32 = 1
  var name: Text
  var home: Home
  var counter: UInt64 = 0
  var runs: [Run] = []
  var epoch = Epoch.first
  /// The numbers of all epochs whose keys the device has.
  var epochs: Set<UInt32> = [1]
  /// Those that it has for reading only.
  var learned: Set<UInt32> = []
  var records: [DeviceTag: SignedMessage] = [:]
  /// The devices that were removed from the list, and have no tombstone yet.
  var forgotten: Set<DeviceTag> = []
  /// Whether the device has an earlier release, which neither reads nor writes version 2.
  var isEarlier = false

  var description: DeviceDescription {
    DeviceDescription(
      name: name, signingKey: keys.signingKey, boxKey: keys.boxKey, joined: Timestamp(milliseconds: 1), home: home,
      readableVersion: isEarlier ? 1 : 2)
  }

  /// Stores a message if it outranks the stored one, as the daemon does.
  mutating func store(_ message: SignedMessage, at tag: DeviceTag) {
    if let known = records[tag], Precedence(message) <= Precedence(known) { return }
    records[tag] = message
  }
}

/// A device whose process may end and start again at any time.
struct PlayedDevice {
  var disk: PlayedDisk
  /// The number of the running process; nil while none runs. Events of other processes are void.
  var process: Int?
  /// The number of the connection; nil while there is none.
  var link: Int?
  var fleet = Fleet()
  /// The number of each deadline, so that a replaced one is void.
  var deadlines: [Deadline: Int] = [:]
  /// The suspicions that the rules reported, in order.
  var suspicions: [TwinWatch.State] = []
  /// Whether the list contains the device: false after a removal, and for a newcomer.
  var isMember = true
  /// The topic and the bytes that the broker publishes at the end of the connection.
  var will: (text: String, bytes: [UInt8])?
  /// The reports of the rules to the person about an invitation, in order.
  var told: [String] = []

  /// The run of the present process.
  var run: Run { disk.runs.first ?? Run(high: 0, low: 0) }

  init(_ disk: PlayedDisk) { self.disk = disk }
}
