import IdentityCore
import IdentityWire

extension WriterReport {
  /// The durable changes of some jobs, and the outcomes.
  struct Results: Sendable {
    /// The numbers of changes and of outcomes after a request.
    struct End: Sendable {
      var changes: Int
      var outcomes: Int
    }

    /// The durable changes in order, to be applied to the committed registry.
    private(set) var changes: [RecordedChange] = []
    /// The events of these changes.
    private(set) var events: [EventLine] = []
    /// The outcomes in the order of the jobs.
    private(set) var outcomes: [Outcome] = []
    /// The ends of requests at which a large transaction can be cut, at least as far apart as a piece is long
    /// (``TurnBound/changes``).
    private var ends: [End] = []

    /// Adds durable changes, their events, and the outcomes of jobs, with the ends of the requests among them.
    mutating func add(_ changes: [RecordedChange], _ events: [EventLine], _ outcomes: [Outcome], ends: [End] = []) {
      // Usually there are none before these, and nothing is copied.
      let before = End(changes: self.changes.count, outcomes: self.outcomes.count)
      if before.changes == 0 && before.outcomes == 0 {
        self.ends = ends
      } else {
        self.ends += ends.map { .init(changes: before.changes + $0.changes, outcomes: before.outcomes + $0.outcomes) }
      }
      self.changes = self.changes.isEmpty ? changes : self.changes + changes
      self.events = self.events.isEmpty ? events : self.events + events
      self.outcomes = self.outcomes.isEmpty ? outcomes : self.outcomes + outcomes
    }

    /// Adds the outcome of a job without durable changes.
    mutating func add(_ outcome: Outcome) { outcomes.append(outcome) }

    /// Returns whether there are more changes or outcomes than a piece of a length has.
    func hasPieces(of length: Int) -> Bool { !ends.isEmpty && max(changes.count, outcomes.count) > length }

    /// Returns pieces that end with a request.
    ///
    /// - Parameter length: the number of changes, or of outcomes, after which a piece ends.
    func pieces(of length: Int) -> [Results] {
      var pieces: [Results] = []
      var start = End(changes: 0, outcomes: 0)
      var rest = events[...]
      func cut(to end: End) {
        var piece = Results()
        piece.changes = Array(changes[start.changes..<end.changes])
        piece.events = Array(rest.prefix(piece.changes.count { $0.event != nil }))
        piece.outcomes = Array(outcomes[start.outcomes..<end.outcomes])
        rest = rest.dropFirst(piece.events.count)
        pieces.append(piece)
        start = end
      }
      for end in ends where max(end.changes - start.changes, end.outcomes - start.outcomes) >= length { cut(to: end) }
      if start.changes < changes.count || start.outcomes < outcomes.count {
        cut(to: End(changes: changes.count, outcomes: outcomes.count))
      }
      return pieces
    }
  }
}
