import IdentityCore
import IdentityWire
import Testing

@testable import IdentityServer

/// The pieces in which the loop takes in a large transaction, so that other users have their turns between two of them.
struct WriterResultTests {
  private let job = Job(
    connection: ConnectionToken(slot: 0, generation: 0), work: .registry(.get(.device, app: nil)), verb: 0, started: 0,
    peer: Peer(userID: 1, groupID: 1, processID: 2, isAdmin: false), principal: .user(1), isShared: false)

  /// Returns the results of requests with these numbers of changes. Every second change has an event. A request ends
  /// wherever the transaction can be cut.
  private func results(of requests: [Int]) -> WriterReport.Results {
    var changes: [RecordedChange] = []
    var outcomes: [WriterReport.Outcome] = []
    var ends: [WriterReport.Results.End] = []
    for request in requests {
      for _ in 0..<request {
        let number = Int64(changes.count)
        changes.append(
          RecordedChange(.deviceSuspected(.device, .machineChanged), event: number % 2 == 0 ? .sample(number) : nil))
      }
      outcomes.append(.init(job, .failure(.notFound("\(outcomes.count)"))))
      ends.append(.init(changes: changes.count, outcomes: outcomes.count))
    }
    var results = WriterReport.Results()
    results.add(changes, changes.events, outcomes, ends: ends)
    return results
  }

  private func sizes(_ pieces: [WriterReport.Results]) -> [[Int]] {
    pieces.map { [$0.changes.count, $0.events.count, $0.outcomes.count] }
  }

  @Test func `a transaction of many requests is taken in in pieces`() {
    let results = results(of: Array(repeating: 1, count: 20))
    #expect(results.hasPieces(of: TurnBound.shared.changes))
    #expect(sizes(results.pieces(of: TurnBound.shared.changes)) == [[8, 4, 8], [8, 4, 8], [4, 2, 4]])
    #expect(!results.hasPieces(of: TurnBound.alone.changes))
  }

  @Test func `a piece ends with a request, and none is empty`() {
    #expect(sizes(results(of: [3, 3, 3, 1, 30, 8]).pieces(of: 8)) == [[9, 5, 3], [31, 15, 2], [8, 4, 1]])
    #expect(sizes(results(of: [100]).pieces(of: 8)) == [[100, 50, 1]])
  }

  @Test func `requests without a change are cut by their number`() {
    #expect(sizes(results(of: Array(repeating: 0, count: 9)).pieces(of: 8)) == [[0, 0, 8], [0, 0, 1]])
  }

  @Test(arguments: [1, 2, 7, 8, 64]) func `pieces together are the transaction`(length: Int) {
    let results = results(of: (0..<90).map { $0 * 7 % 5 })
    let pieces = results.pieces(of: length)
    #expect(pieces.flatMap(\.events).map(\.sequence) == results.events.map(\.sequence))
    #expect(pieces.flatMap(\.outcomes).map(ObjectIdentifier.init) == results.outcomes.map(ObjectIdentifier.init))
    #expect(pieces.reduce(0) { $0 + $1.changes.count } == results.changes.count)
    for piece in pieces { #expect(piece.events.map(\.sequence) == piece.changes.compactMap { $0.event?.sequence }) }
  }

  @Test func `two transactions of one report are cut at the ends of both`() {
    var both = results(of: [5, 5])
    let second = results(of: [4, 4, 4])
    both.add(second.changes, second.events, second.outcomes, ends: [.init(changes: 4, outcomes: 1)])
    #expect(sizes(both.pieces(of: 8)) == [[10, 5, 2], [12, 6, 3]])
  }

  @Test func `everything but changes and outcomes is in the first piece, and the stop in the last`() {
    var report = WriterReport(results: results(of: Array(repeating: 1, count: 20)))
    report.heartbeat = 7
    report.hasStopped = true
    let pieces = report.pieces(of: 8)
    #expect(pieces.map(\.heartbeat) == [7, nil, nil])
    #expect(pieces.map(\.hasStopped) == [false, false, true])
  }
}
