/// The part of the fleet's state that only this device has: its counter, its generation and its runs.
package struct FleetStanding: Equatable, Sendable {
  /// The counter of the last message that this device wrote, or is about to write. It never falls.
  package var counter: Int64
  /// The highest generation of this device's messages, in any account; 0 if it has had none. It never falls, so that a
  /// device which comes back to an account outranks the tombstone with which it left.
  package var generation: UInt32
  /// The runs of the fleet on this device, newest first, at most ``Bound/fleetRuns``. Each has 16 random bytes.
  package var runs: [UUID]
  /// The identifier that a renewal left to the machine that this one may be a copy of, until the fleet's service has made
  /// keys of its own. The keys of before are those of the other machine.
  package var original: UUID?

  package init(counter: Int64, generation: UInt32 = 0, runs: [UUID] = [], original: UUID? = nil) {
    self.counter = counter
    self.generation = generation
    self.runs = runs
    self.original = original
  }
}

/// The answer of the fleet's service to the question whether this machine is the copy, if two have one identifier.
package enum CopyVerdict: String, CaseIterable, Sendable {
  case yes
  case no
  case unknown
}

extension Text {
  /// Creates the 32 hexadecimal digits of 16 bytes, in lower case.
  package init(hexadecimal value: UUID) { self.init(trusted: Text(value).bytes.filter { $0 != UInt8(ascii: "-") }) }
}
