// The messages of the fleet: The fleet in identityd-protocol(7).
extension ReferenceModel {
  /// A record or a tombstone.
  struct Record: Sendable {
    let device: String
    let generation: Int
    let counter: Int
    let isGone: Bool
    let isSuspect: Bool
    let message: String

    init(_ request: Request, isGone: Bool) {
      device = request.word(0)
      generation = Int(request["generation"] ?? "") ?? 0
      counter = Int(request["counter"] ?? "") ?? 0
      self.isGone = isGone
      isSuspect = request["suspect"] == "yes"
      message = request["record"] ?? ""
    }

    /// The words that compare, in their order. Random requests have another message for each rank.
    var rank: [Int] { [epoch, generation, isGone ? 1 : 0, counter] }

    /// The epoch of a message in the form of the fleet. Random requests have no others than these.
    private var epoch: Int {
      guard message.hasPrefix("aUY") else { return 0 }
      return message.dropFirst(4).hasPrefix("AQAAAAE") ? 1 : message.dropFirst(4).hasPrefix("AQAAAAI") ? 2 : 0
    }
  }

  func isSuspect(_ value: String) -> Bool { records.contains { $0.device == value && $0.isSuspect } }

  mutating func putRecord(_ request: Request) throws(Fault) -> [String] {
    let record = Record(request, isGone: false)
    let own = current(Scope("device"))?.value
    let former = request["replaces"]
    guard former == nil || former != own else { throw .conflict }
    guard try isNew(record) else { return ["OK same"] }
    try requireOpen()
    let previous = devices.firstIndex { $0.value == former }
    var outcome = "changed"
    if devices.contains(where: { $0.value == record.device }) {
      if let previous { unlist(previous) }
    } else if let previous, let former {
      devices[previous].value = record.device
      tell("devices", "replaced", " value=\(record.device) previous=\(former)", to: .sharing)
    } else {
      devices.append(Device(value: record.device, name: request["name"], seen: request["seen"], added: time))
      tell("devices", "added", " value=\(record.device)", to: .sharing)
      outcome = "added"
    }
    if let place = devices.firstIndex(where: { $0.value == record.device }) {
      if record.device != own { rename(place, request["name"]) }
      devices[place].seen = request["seen"] ?? devices[place].seen
    }
    keep(record)
    return ["OK \(outcome)"]
  }

  mutating func putTombstone(_ request: Request) throws(Fault) -> [String] {
    let tombstone = Record(request, isGone: true)
    guard try isNew(tombstone) else { return ["OK"] }
    try requireOpen()
    keep(tombstone)
    if tombstone.device != current(Scope("device"))?.value,
      let place = devices.firstIndex(where: { $0.value == tombstone.device })
    {
      unlist(place)
    }
    return ["OK"]
  }

  mutating func reportTwin(_ copy: String) throws(Fault) -> [String] {
    guard !isCloned else { return ["OK"] }
    try requireOpen()
    isCloned = true
    for identifier in current where identifier.scope.level == "device" {
      let attributes = " value=\(identifier.value) cause=cloned\(whose(identifier.scope)) copy=\(copy)"
      tell("device", "suspect", attributes, to: audience(of: identifier.scope))
    }
    return ["OK"]
  }

  func listRecords(_ request: Request) -> [String] {
    let after = request["after"] ?? ""
    let found = records.filter { $0.device > after }.sorted { $0.device < $1.device }
    return rows(
      found.prefix(Int(request["limit"] ?? "") ?? .max).map {
        "\($0.device) generation=\($0.generation) counter=\($0.counter) gone=\($0.isGone ? "yes" : "no")"
          + " record=\($0.message)"
      })
  }

  private func isNew(_ record: Record) throws(Fault) -> Bool {
    guard let known = records.first(where: { $0.device == record.device }) else { return true }
    guard known.rank != record.rank else { return false }
    guard known.rank.lexicographicallyPrecedes(record.rank) else { throw .conflict }
    return true
  }

  private mutating func keep(_ record: Record) {
    if record.isSuspect != isSuspect(record.device), !record.isGone {
      tell("devices", "changed", " value=\(record.device) suspect=\(record.isSuspect ? "yes" : "no")", to: .sharing)
    }
    records.removeAll { $0.device == record.device }
    records.append(record)
    if record.device == current(Scope("device"))?.value { fleet.generation = max(fleet.generation, record.generation) }
  }
}
