/// The part of the fleet in the registry.
///
/// One object, because each change of any kind copies the registry several times, and each copy retains this object
/// instead of every part of it.
final class FleetState: Equatable, Sendable {
  struct Parts: Equatable, Sendable {
    /// The counter, the generation and the runs of this device; nil before the fleet is used.
    var standing: FleetStanding?
    /// The messages about the devices.
    var records = FleetRecords()
  }

  let parts: Parts

  init(_ parts: Parts) { self.parts = parts }

  static func == (left: FleetState, right: FleetState) -> Bool { left === right || left.parts == right.parts }
}

extension FleetState? {
  /// Changes the parts. A state without any part is nil.
  mutating func change(_ body: (inout FleetState.Parts) -> Void) {
    var parts = self?.parts ?? FleetState.Parts()
    // The old object is released first, so that the messages are changed in place and not copied.
    self = nil
    body(&parts)
    if parts.standing != nil || parts.records.count > 0 { self = FleetState(parts) }
  }
}
