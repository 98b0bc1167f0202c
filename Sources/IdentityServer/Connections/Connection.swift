import Attestation
import Glibc
import IdentityCore
import IdentityWire
import LinuxSystem
import Sessions

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
  /// The share of the principal that the peer belongs to.
  let share: PrincipalShare
  var session = Session()
  private var buffers = ConnectionBuffers()
  var readiness = SocketReadiness()
  /// The place in the queues of the principal, which the scheduler gives.
  var place = TurnScheduler.Place.none
  var establishment: Establishment
  private var particulars: Particulars?

  /// - Parameter process: a pidfd of the process that connected; nil if it is not known yet.
  init(
    _ descriptor: consuming Descriptor, token: ConnectionToken, peer: HeldPeer, share: PrincipalShare,
    process: consuming Descriptor?
  ) {
    self.descriptor = descriptor
    self.token = token
    held = peer
    self.share = share
    establishment = Establishment(process: process)
  }

  deinit {
    if hasInput { input.wipe() }
    if session.hasSecret || session.holdsOutput { output.wipe() }
  }

  /// The peer.
  var peer: Peer { held.peer }

  /// Whether ``input`` has content.
  var hasInput: Bool { !buffers.input.isEmpty }

  /// Whether ``output`` has content.
  var hasOutput: Bool { !buffers.output.isEmpty }

  /// Input that was received and not carried out yet. A modification takes the array out of the property.
  var input: [UInt8] {
    get { buffers.input.bytes }
    set { buffers.input.put(newValue) }
    _modify {
      var bytes = buffers.input.take()
      defer { buffers.input.put(bytes) }
      yield &bytes
    }
  }

  /// Output to be sent. A modification takes the array out of the property.
  var output: [UInt8] {
    get { buffers.output.bytes }
    set { buffers.output.put(newValue) }
    _modify {
      var bytes = buffers.output.take()
      defer { buffers.output.put(bytes) }
      yield &bytes
    }
  }

  /// The number of bytes of ``output`` that are sent.
  var sent: Int {
    get { buffers.sent }
    set { buffers.sent = newValue }
  }

  /// Whether the socket has not taken all output.
  var hasUnsentOutput: Bool { buffers.hasUnsentOutput }

  /// Whether another request may be carried out now. Otherwise the request waits until output is read or changes
  /// are committed.
  ///
  /// An idle connection may always carry out one request, so that a client never waits for another client of its
  /// principal to read.
  var hasRoom: Bool {
    session.takesRequest(most: share.limits.changesPerConnection)
      && (!hasOutput || output.count - sent < share.limits.outputPerConnection) && (share.hasRoom || isIdle)
  }

  /// Returns the next step in the input from an index on; see ``Session/next(in:from:limit:_:)``.
  func next(in input: borrowing Span<UInt8>, from start: Int, limit: Int) -> Session.Step {
    // A copy, because a call in another module would cost an exclusivity check for each use of the property.
    var session = session
    defer { self.session = session }
    return session.next(in: input, from: start, limit: limit, hasRoom)
  }

  /// The events that the kernel should watch for.
  var wantedInterest: ReadinessSet.Interest {
    (hasUnsentOutput || session.awaitsReader) && !session.isParked ? .newsAndRoom : .news
  }

  /// Whether input may contain a request, and nothing keeps the request from being carried out.
  var canGoOn: Bool { hasInput && hasRoom && !session.isAtWriter && session.mayHaveRequest(in: input.count) }

  /// Whether the next piece of a long answer should be appended to the output.
  var wantsPiece: Bool { session.wantsPiece(hasOutput: hasOutput) }

  /// Whether the connection is at rest: nothing is in progress or pending, and there is no subscription.
  ///
  /// Unread input in the socket does not count as pending. Inlined, because every request runs this code.
  @inline(__always)
  var isAtRest: Bool { isQuiet && !isSubscribed }

  /// Whether the connection is at rest, apart from a subscription.
  @inline(__always)
  private var isQuiet: Bool { !hasInput && !hasOutput && session.isAtRest && !place.isQueued }

  /// Reads the input that has arrived, with one system call.
  ///
  /// - Returns: the number of bytes in the buffer, 0 at the end of the stream; nil if nothing has arrived.
  @inline(__always)
  func receive(into buffer: borrowing ByteBuffer, atMost limit: Int) throws(SystemError) -> Int? {
    let looksForDescriptors = readiness.looksForDescriptors
    var isCut = false
    let count: Int?
    do {
      count =
        looksForDescriptors
        ? try descriptor.receive(into: buffer, atMost: limit, isCut: &isCut)
        : try descriptor.receive(into: buffer, atMost: limit)
    } catch  where error.code == ECONNRESET {
      // The client has closed without reading everything. The kernel says so once, at the end of the stream.
      count = 0
    }
    readiness.noteRead(count, of: min(limit, buffer.count), isCut: isCut)
    if looksForDescriptors, readiness.noteDescriptors(isCut, most: Bound.readingsBeforeRefusal) {
      let isRefused = descriptor.refuseDescriptors()
      readiness.noteRefusal(isRefused)
    }
    return count
  }

  /// Whether the subscription has events to send, and they may be sent now.
  func wantsEvents(_ log: EventLog) -> Bool { subscription?.isCurrent(log) == false && session.takesEvents }

  /// Whether the connection has a subscription.
  var isSubscribed: Bool { if let particulars { particulars.isSubscribed } else { false } }

  /// Whether more input may be read now.
  var wantsInput: Bool {
    hasRoom && session.reading.mayGoOn && !place.isQueued && (!hasInput || input.count < share.limits.lineLength)
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
    case .backup: session.begin(.backup)
    case .secrets: session.begin(.secrets)
    case .search: session.begin(.search)
    case .uuids, .reply: session.begin(.rows)
    case .zeros: session.begin(.failure)
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
    session.wait(for: .reader)
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
    guard isQuiet, !readiness.hasInput, let particulars else { return false }
    return particulars.subscription?.awaitsOnly(line) == true
  }

  /// Moves the subscription past the event that it awaits.
  ///
  /// - Returns: whether the client subscribed to the event.
  func pass(_ line: EventLine) -> Bool { particulars?.subscription?.pass(line) == true }

  /// Whether the connection is plain, and its saved record says so.
  var isKeptAsItIs: Bool { establishment.kept == .plain && particulars == nil && isPlain }

  /// Whether neither input nor output is pending, and the connection is not ending.
  private var isPlain: Bool {
    !hasInput && !hasOutput && !session.hasEnded && !session.isClosing && !session.isDraining && !hasFleetOpen
  }

  /// The shape of the connection in its saved record; nil if there is no current record.
  var keptShape: Shape? {
    get { establishment.kept == .plain ? .plain : particulars?.keptShape }
    set {
      establishment.kept = newValue == .plain ? .plain : .otherwise
      let other = newValue == .plain ? nil : newValue
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
