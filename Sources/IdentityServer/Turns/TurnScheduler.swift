import IdentityCore
import LinuxSystem
import Sessions

/// The work of a turn, which a ``TurnScheduler`` gives out.
protocol TurnService {
  /// Serves a connection as far as it goes within a turn.
  func serve(_ connection: Connection)
  /// Sends new events to some of a principal's subscribers.
  func publish(to share: PrincipalShare)
  /// Establishes at least one of a principal's new connections, and others until the turn is over.
  func establish(of share: PrincipalShare, atMost most: Int, _ isOver: () -> Bool)
}

/// The order of service: principals take turns, and within the turn of a principal its connections take turns.
final class TurnScheduler {
  private let connections: ConnectionTable
  private let writer: WriterChannel
  /// The principals that wait for a turn, in order.
  private var queue: [PrincipalShare] = []
  /// The number of principals that wait for a turn. Stored, because a look into the array would cost more.
  private(set) var waiting = 0
  /// Whether the daemon stops, so that no request is read after the present turns. A list then begins without waiting
  /// for a place.
  private var readsLast = false

  init(_ connections: ConnectionTable, _ writer: WriterChannel) {
    self.connections = connections
    self.writer = writer
  }

  // MARK: Queues

  /// Queues a connection for another turn, behind the other connections of its principal.
  func enqueue(_ connection: Connection) {
    guard !connection.place.isQueued else { return }
    let awaitsList = connection.place == .awaitingList
    connection.place.enqueue()
    let share = connection.share
    if connection.session.isWrittenAhead {
      share.writing.append(connection.token)
    } else if awaitsList {
      share.listing.append(connection.token)
    } else {
      share.waiting.append(connection.token)
    }
    enqueue(share)
  }

  /// Queues a new connection to be established in a turn of its principal.
  func enqueueNew(_ connection: Connection) {
    connection.share.new.append(connection.token)
    enqueue(connection.share)
  }

  /// Queues a principal for a turn if it has pending work.
  func enqueue(_ share: PrincipalShare) {
    guard share.isDue, !share.isWaiting else { return }
    share.isWaiting = true
    queue.append(share)
    waiting += 1
  }

  /// Returns whether a connection may begin a list or search now. Otherwise the connection waits for the end of another
  /// one of its principal.
  ///
  /// A queued connection begins a list only in its turn. Events may advance it before, and then its list would not count.
  ///
  /// - Parameter isReady: whether all records of the list are there.
  func mayList(_ connection: Connection, isReady: Bool = true) -> Bool {
    let mayBegin =
      readsLast || (isReady && !connection.place.isQueued && connection.share.writing.count < Bound.longAnswersAtOnce)
    connection.place.awaitList(!mayBegin)
    return mayBegin
  }

  // MARK: Turns

  /// Gives a turn to each principal with pending work.
  ///
  /// - Parameter early: the number of principals that waited before the kernel was asked for events. They had a turn
  ///   already, so the principals that became ready since go first.
  func giveTurns(behind early: Int, _ service: some TurnService) {
    let round = queue
    for share in round[early...] { writer.inTurn { giveTurn(share, service) } }
    for share in round[..<early] { writer.inTurn { giveTurn(share, service) } }
    queue.removeFirst(round.count)
    waiting = queue.count
  }

  /// Serves one principal: first its long answers, then connections that wait to begin one, then its other waiting
  /// connections, then its subscribers, then its new connections.
  private func giveTurn(_ share: PrincipalShare, _ service: some TurnService) {
    share.isWaiting = false
    defer { enqueue(share) }
    let turn = connections.turn
    let isShared = connections.isShared
    // A principal that overran its time gives up as much time in its next turns.
    if !isShared { share.overdraft = 0 }
    guard share.overdraft < turn.microseconds else {
      share.overdraft -= turn.microseconds
      return
    }
    let time = turn.microseconds - share.overdraft
    let started = Clock.monotonicMicroseconds
    func isOver() -> Bool { Clock.monotonicMicroseconds - started >= time }
    // At least one connection of each queue is served, however long those of the queue before it took.
    serve(share.writing, share.writing.count, service, isOver)
    serve(share.listing, Bound.longAnswersAtOnce - share.writing.count, service, isOver)
    serve(share.waiting, turn.connections, service, isOver)
    service.publish(to: share)
    service.establish(of: share, atMost: turn.connections, isOver)
    guard isShared else { return }
    let taken = Clock.monotonicMicroseconds - started
    share.overdraft = taken > time ? taken - time : 0
  }

  /// Serves every connection that waits with a request, without a time limit, because no request is read afterwards.
  /// Long answers go on in later turns.
  func giveLastTurns(_ service: some TurnService) {
    readsLast = true
    for share in connections.allShares {
      serve(share.listing, .max, service) { false }
      serve(share.waiting, .max, service) { false }
    }
  }

  /// Serves connections of one queue: at least one, so that each gets its turn eventually.
  ///
  /// - Parameter most: the maximum number of connections.
  private func serve(
    _ queue: ConnectionQueue, _ most: Int, _ service: some TurnService, _ isOver: () -> Bool
  ) {
    // Connections that are queued meanwhile are served in the next turn.
    let count = min(queue.count, most)
    var served = 0
    while served < count, served == 0 || !isOver(), let token = queue.popFirst() {
      served += 1
      guard let connection = connections[token] else { continue }
      connection.place.leaveQueue()
      service.serve(connection)
    }
  }
}

extension TurnScheduler {
  /// The places of a connection in the queues of its principal.
  enum Place {
    case none
    /// In a queue, for the next turn.
    case queued
    /// In no queue. The next request is a list that waits for the end of another list of the principal.
    case awaitingList
    /// In a queue, with such a request.
    case queuedForList

    /// Whether the connection is in a queue for its next turn.
    var isQueued: Bool {
      switch self {
      case .queued, .queuedForList: true
      case .none, .awaitingList: false
      }
    }

    fileprivate mutating func enqueue() { self = self == .awaitingList ? .queuedForList : .queued }

    fileprivate mutating func leaveQueue() { self = self == .queuedForList ? .awaitingList : .none }

    /// Sets whether the next request is a list that has to wait.
    fileprivate mutating func awaitList(_ waits: Bool) {
      switch self {
      case .none, .awaitingList: self = waits ? .awaitingList : .none
      case .queued, .queuedForList: self = waits ? .queuedForList : .queued
      }
    }
  }
}
