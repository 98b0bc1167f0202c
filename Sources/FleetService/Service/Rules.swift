import FleetCore

/// The rules of the fleet in the service: with the inputs that wait for their turn, and the deadlines.
struct Rules {
  private(set) var fleet = Fleet()
  private var inputs: [Input] = []
  /// The deadlines that the rules have asked for.
  let deadlines = Deadlines<Deadline>()

  /// Puts rules that know nothing in place of these.
  mutating func reset(_ settings: Settings = Settings()) {
    deadlines.cancelAll()
    (fleet, inputs) = (Fleet(settings), [])
  }

  /// Lets an input wait behind the others.
  mutating func queue(_ input: Input) { inputs.append(input) }

  /// Takes the next input. Returns the actions that follow from it; nil if no input waits.
  mutating func takeNext() -> [Action]? { inputs.isEmpty ? nil : fleet.take(inputs.removeFirst()) }
}
