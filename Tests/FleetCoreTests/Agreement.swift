import FleetCore
import FleetSeal
import FleetWire

extension PlayedFleet {
  /// Returns all contradictions between the devices, their disks and the broker.
  func disagreements() -> [String] {
    var found = faults
    let members = devices.indices.filter { devices[$0].isMember }
    let tags = Set(devices.map(\.disk.tag)).sorted()
    if Set(members.map { devices[$0].disk.epoch.number }).count > 1 {
      found.append("the epochs are \(members.map { devices[$0].disk.epoch.number })")
    }
    for device in members {
      let own = devices[device]
      if own.fleet.phase != .live { found.append("device \(device) is \(own.fleet.phase)") }
      if !own.fleet.isSettled { found.append("device \(device) is not settled") }
      if own.disk.records.mapValues(\.digest)
        != Dictionary(
          uniqueKeysWithValues: own.fleet.roster.tags.map { ($0, own.fleet.roster[$0]?.digest ?? []) })
      {
        found.append("device \(device) has stored something else")
      }
      let record = own.fleet.roster[own.disk.tag]
      if record?.kind != .record || record.flatMap({ DeviceDescription($0.body.fields)?.name }) != own.disk.name {
        found.append("device \(device) has another name than its record")
      }
    }
    for tag in tags {
      let known = Set(members.map { devices[$0].fleet.roster[tag]?.digest })
      let short = "\(tag)".suffix(6)
      if known.count > 1 { found.append("the devices disagree about \(short)") }
      let text = MessageTopic.device(account.id, tag).text
      for device in members where devices[device].fleet.roster[tag]?.bytes != broker.retained[text] {
        found.append("the broker and device \(device) disagree about \(short)")
      }
    }
    return found
  }

  /// Returns the end of the log, for a failure.
  func story(of seed: UInt64) -> String { "seed \(seed):\n" + log.suffix(300).joined(separator: "\n") }
}
