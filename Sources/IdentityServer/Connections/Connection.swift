import Attestation
import Glibc
import IdentityCore
import IdentityWire
import LinuxSystem

/// The identity of a connection: its slot in the table and the slot's generation counter.
struct ConnectionToken: Hashable, Sendable {
  let rawValue: UInt64

  /// The highest bit stays 0, because it marks the tokens that are not connections; see ``LoopToken``.
  init(slot: Int, generation: UInt32) { rawValue = UInt64(generation & 0x7fff_ffff) << 32 | UInt64(slot) }
  init(rawValue: UInt64) { self.rawValue = rawValue }

  var slot: Int { Int(rawValue & 0xffff_ffff) }
}

/// A client's connection. Its buffers take memory only while they have content.
final class Connection {
  let descriptor: Descriptor
  let token: ConnectionToken
  let held: HeldPeer
  /// The peer.
  var peer: Peer { held.peer }
  /// The share of the principal that the peer belongs to.
  let share: PrincipalShare
  /// A pidfd of the process that connected; nil once the process is watched.
  var process: Descriptor?

  private var storedInput: [UInt8] = []
  /// Whether ``input`` has content. Stored, like ``hasOutput``, because a check of the array would cost as much as all
  /// other checks of a request together.
  private(set) var hasInput = false
  /// The number of bytes of `input` that are known to contain no line feed, so that a slow sender's line is
  /// searched once.
  var searched = 0
  private var storedOutput: [UInt8] = []
  private(set) var hasOutput = false
  /// The number of bytes of `output` that are sent.
  var sent = 0
  var session = SessionState()
  /// The number of requests made.
  var requests: UInt64 = 0
  /// The events that the kernel watches for; nil before the first turn has ended.
  var interest: ReadinessSet.Interest?
  /// Whether there may be input to read. Events are edge-triggered: the kernel does not report this input again.
  var mayHaveInput = true
  /// Whether a short read does not mean that all input was read; see ``ReadinessSet/Interest/exceptional``.
  var readsToTheEnd = false
  private var descriptorsAlong = DescriptorsAlong.possible
  /// The number of reads so far. Counted only in the state `possible`.
  private var readings = 0
  /// Whether the service manager has a duplicate of the descriptor, so that closing it here does not end
  /// the connection.
  var isStored = false
  /// Whether the saved record of the connection has the shape ``Shape/plain``.
  private var isKeptPlain = false
  /// Whether the connection is in a queue of its principal for its next turn.
  var isWaitingForTurn = false
  /// Whether the next request is a list that has to wait for the end of another list of the principal.
  var awaitsPlaceForList = false
  /// The part of the principal's pending output that this connection accounts for, in bytes.
  var counted = 0
  private var particulars: Particulars?

  init(_ descriptor: consuming Descriptor, token: ConnectionToken, peer: HeldPeer, share: PrincipalShare) {
    self.descriptor = descriptor
    self.token = token
    held = peer
    self.share = share
  }

  deinit {
    if hasInput { input.wipe() }
    if session.hasSecret || session.isGathering { output.wipe() }
  }

  /// Input that was received and not carried out yet.
  ///
  /// A modification takes the array out of the property. The array is then referenced only locally, and its use needs
  /// none of Swift's exclusivity checks, which cost more than most operations on it.
  var input: [UInt8] {
    get { storedInput }
    set {
      hasInput = !newValue.isEmpty
      storedInput = newValue
    }
    _modify {
      var bytes = storedInput
      storedInput = []
      defer {
        hasInput = !bytes.isEmpty
        storedInput = bytes
      }
      yield &bytes
    }
  }

  /// Output to be sent. A modification takes the array out of the property, as for ``input``.
  var output: [UInt8] {
    get { storedOutput }
    set {
      hasOutput = !newValue.isEmpty
      storedOutput = newValue
    }
    _modify {
      var bytes = storedOutput
      storedOutput = []
      defer {
        hasOutput = !bytes.isEmpty
        storedOutput = bytes
      }
      yield &bytes
    }
  }

  /// Whether another request may be carried out now. Otherwise the request waits until output is read or changes
  /// are committed.
  ///
  /// An idle connection may always carry out one request, so that a client never waits for another client of its
  /// principal to read.
  var hasRoom: Bool {
    session.takesRequest(most: share.limits.changesPerConnection)
      && (!hasOutput || output.count - sent < share.limits.outputPerConnection) && (share.hasRoom || isIdle)
  }

  /// The events that the kernel should watch for.
  var wantedInterest: ReadinessSet.Interest {
    (hasUnsentOutput || session.awaitsReader) && !session.isParked ? .newsAndRoom : .news
  }

  /// Whether input may contain a request, and nothing keeps the request from being carried out.
  var canGoOn: Bool { hasInput && hasRoom && !session.isAtWriter && searched < input.count }

  /// Whether the next piece of a long answer should be appended to the output.
  var wantsPiece: Bool { session.wantsPiece(hasOutput: hasOutput) }

  /// Whether the socket has not taken all output.
  var hasUnsentOutput: Bool { hasOutput && sent < output.count }

  /// Whether the connection is at rest: nothing is in progress or pending, and there is no subscription.
  ///
  /// Unread input in the socket does not count as pending.
  var isAtRest: Bool { isQuiet && !isSubscribed }

  /// Whether the connection is at rest, apart from a subscription.
  private var isQuiet: Bool { !hasInput && !hasOutput && session.isAtRest && !isWaitingForTurn }

  /// Reads the input that has arrived, with one system call.
  ///
  /// - Returns: the number of bytes in the buffer, 0 at the end of the stream; nil if nothing has arrived.
  func receive(into buffer: borrowing ByteBuffer, atMost limit: Int) throws(SystemError) -> Int? {
    var isCut = false
    let count: Int?
    do {
      count =
        descriptorsAlong == .none
        ? try descriptor.receive(into: buffer, atMost: limit)
        : try descriptor.receive(into: buffer, atMost: limit, isCut: &isCut)
    } catch  where error.code == ECONNRESET {
      // The client has closed without reading everything. The kernel says so once, at the end of the stream.
      count = 0
    }
    if let count {
      mayHaveInput = count == min(limit, buffer.count) || isCut || (count > 0 && readsToTheEnd)
    } else {
      mayHaveInput = false
    }
    if descriptorsAlong != .none { lookForDescriptors(isCut) }
    return count
  }

  /// The states of the check for descriptors that come with the bytes. A read that makes the check costs more.
  private enum DescriptorsAlong {
    case possible
    /// The kernel refuses descriptors from the client, but input sent earlier is not all read yet.
    case refused
    case none
    /// The client has sent descriptors, or the kernel cannot refuse them.
    case always
  }

  /// Makes the kernel refuse descriptors once a client has made many requests and never sent one.
  private func lookForDescriptors(_ isCut: Bool) {
    switch descriptorsAlong {
    case .possible:
      readings += 1
      if isCut {
        descriptorsAlong = .always
      } else if readings == Bound.readingsBeforeRefusal {
        descriptorsAlong = descriptor.refuseDescriptors() ? .refused : .always
      }
    case .refused where !mayHaveInput: descriptorsAlong = .none
    case .refused, .none, .always: break
    }
  }

  /// Whether the subscription has events to send, and they may be sent now.
  func wantsEvents(_ log: EventLog) -> Bool { subscription?.isCurrent(log) == false && session.takesEvents }

  /// Whether the connection has a subscription.
  var isSubscribed: Bool { if let particulars { particulars.isSubscribed } else { false } }

  /// Whether more input may be read now.
  var wantsInput: Bool {
    hasRoom && session.mayRead && !isWaitingForTurn && (!hasInput || input.count < share.limits.lineLength)
  }

  /// Whether no request is in progress and no output is pending.
  var isIdle: Bool { session.hasAnswered && !hasUnsentOutput }
}

// MARK: - Particulars

extension Connection {
  /// State that few connections have, and only for a time.
  ///
  /// A separate object, so that other connections need no memory for this state.
  private final class Particulars {
    var outgoing: LongAnswer?
    var subscription: Subscription?
    var keptShape: Shape?
    var hasFleetOpen = false
    var backupTime: Timestamp?
    var credential: CredentialRequest?
    var subject: Peer?

    /// Not `!= nil`, which would compare subscriptions, because they are equatable.
    var isSubscribed: Bool {
      if case .some = subscription { true } else { false }
    }

    private var hasSubject: Bool { if case .some = subject { true } else { false } }

    var isEmpty: Bool {
      outgoing == nil && !isSubscribed && keptShape == nil && !hasFleetOpen && backupTime == nil && credential == nil
        && !hasSubject
    }
  }

  /// Changes one of the particulars. If none is left afterwards, the object is released.
  ///
  /// - Parameter isThere: whether the changed one has a value afterwards.
  private func change(_ isThere: Bool, _ body: (Particulars) -> Void) {
    guard isThere || particulars != nil else { return }
    let changed = particulars ?? Particulars()
    body(changed)
    particulars = changed.isEmpty ? nil : changed
  }

  /// The rest of the list, search or backup in progress.
  private(set) var outgoing: LongAnswer? {
    get { particulars?.outgoing }
    set { change(newValue != nil) { $0.outgoing = newValue } }
  }

  /// Begins a list or backup. A client that has hung up gets no list.
  func begin(_ answer: LongAnswer) {
    switch answer {
    case .backup: session.beginBackup()
    case .secrets: session.beginGathering()
    case .search: session.beginSearch()
    case .uuids, .reply: session.beginRows()
    case .zeros: session.beginFailure(waits: false)
    }
    outgoing = session.hasLongAnswer ? answer : nil
  }

  /// Replaces the rest of the list or backup. Nil ends the answer.
  func goOn(with rest: LongAnswer?) {
    outgoing = rest
    if rest == nil, session.hasLongAnswer || session.awaitsReader { _ = endReading() }
  }

  /// Waits until the client has read a backup of which every piece is in the output.
  func awaitReader(of backup: OutgoingBackup) {
    outgoing = nil
    session.awaitReader()
    change(session.awaitsReader) { $0.backupTime = backup.made }
  }

  /// Ends the wait for the reader of a backup.
  ///
  /// - Returns: the time when the backup was made.
  func endReading() -> Timestamp? {
    defer { change(false) { $0.backupTime = nil } }
    session.finishAnswer()
    return particulars?.backupTime
  }

  /// The service manager's request for a credential, if the connection is one.
  var credential: CredentialRequest? {
    get { particulars?.credential }
    set { change(newValue != nil) { $0.credential = newValue } }
  }

  /// The peer that answers are about: the peer of the connection, or the main process of the unit for which a service
  /// manager requests an identifier.
  var subject: Peer {
    get { particulars?.subject ?? peer }
    set { change(true) { $0.subject = newValue } }
  }

  /// The subscription, if any.
  var subscription: Subscription? {
    get { particulars?.subscription }
    _modify {
      guard let particulars else {
        var new: Subscription?
        yield &new
        return change(new != nil) { $0.subscription = new }
      }
      // A modification takes the value out of the property, as for ``input``.
      var subscription = particulars.subscription
      particulars.subscription = nil
      defer {
        particulars.subscription = subscription
        if particulars.isEmpty { self.particulars = nil }
      }
      yield &subscription
    }
  }

  /// Whether the client has the fleet open, which only one connection may have.
  ///
  /// The next run of the daemon closes the connection, so that its client opens the fleet again.
  var hasFleetOpen: Bool {
    get { if let particulars { particulars.hasFleetOpen } else { false } }
    set { change(newValue) { $0.hasFleetOpen = newValue } }
  }

  /// Whether nothing is in progress or pending, and the subscription lacks only this event.
  func awaitsOnly(_ line: EventLine) -> Bool {
    guard isQuiet, !mayHaveInput, let particulars else { return false }
    return particulars.subscription?.awaitsOnly(line) == true
  }

  /// Moves the subscription past the event that it awaits.
  ///
  /// - Returns: whether the client subscribed to the event.
  func pass(_ line: EventLine) -> Bool { particulars?.subscription?.pass(line) == true }

  /// Whether the connection is plain, and its saved record says so.
  var isKeptAsItIs: Bool { isKeptPlain && particulars == nil && isPlain }

  /// Whether neither input nor output is pending, and the connection is not ending.
  private var isPlain: Bool {
    !hasInput && !hasOutput && !session.hasEnded && !session.isClosing && !session.isDraining && !hasFleetOpen
  }

  /// The shape of the connection in its saved record; nil if there is no current record.
  var keptShape: Shape? {
    get { isKeptPlain ? .plain : particulars?.keptShape }
    set {
      isKeptPlain = newValue == .plain
      let other = isKeptPlain ? nil : newValue
      change(other != nil) { $0.keptShape = other }
    }
  }
}

extension Connection {
  /// The facts that tell whether the saved record of a connection is still current.
  struct Shape: Equatable {
    /// Whether neither input nor output is pending, and the connection is not ending.
    let isPlain: Bool
    let starts: [Int64]?
    let lag: Subscription.Lag?

    /// The shape of most connections.
    static let plain = Shape(isPlain: true, starts: nil, lag: nil)
  }

  /// The current shape.
  var shape: Shape {
    Shape(isPlain: isPlain, starts: subscription?.starts, lag: subscription?.lag)
  }
}
