import IdentityCore
import LinuxSystem

/// Names a connection for as long as it lasts: its place in the table, and how often that place was taken before.
struct ConnectionToken: Hashable, Sendable {
  let rawValue: UInt64

  /// The highest bit stays free, for what is no connection.
  init(slot: Int, generation: UInt32) { rawValue = UInt64(generation & 0x7fff_ffff) << 32 | UInt64(slot) }
  init(rawValue: UInt64) { self.rawValue = rawValue }

  var slot: Int { Int(rawValue & 0xffff_ffff) }
}

/// One client. Its buffers hold memory only while there is something in them.
final class Connection {
  let descriptor: Descriptor
  let token: ConnectionToken
  let held: HeldPeer
  /// Who connected.
  var peer: Peer { held.peer }
  /// The share of the user it belongs to.
  let share: PrincipalShare
  /// Stands for the process that connected, until that is watched.
  var process: Descriptor?

  private var storedInput: [UInt8] = []
  /// Known by itself, as ``hasOutput`` is: to look at an array costs as much as all else that is looked at with a request.
  private(set) var hasInput = false
  /// How much of `input` is known to hold no line feed, so that a slow sender's line is searched once.
  var searched = 0
  private var storedOutput: [UInt8] = []
  private(set) var hasOutput = false
  /// How much of `output` is sent.
  var sent = 0
  /// The output ends with a secret: nothing is appended to it, and it is wiped once it is sent.
  var holdsSecret = false
  /// It asked for a backup, and has not all of it.
  var isBackedUp = false
  /// The writer's next answer holds a secret or a backup: nothing is carried out before that is sent.
  var awaitsLast = false
  /// Jobs at the writer.
  var inFlight = 0
  /// How many requests it has made.
  var requests: UInt64 = 0
  /// What the kernel watches it for now; nil before its first turn has ended.
  var interest: ReadinessSet.Interest?
  /// There may be something to read: the kernel told so, and does not again before more comes.
  var mayHaveInput = true
  /// That less comes than there was room for does not mean that there is no more.
  var readsToTheEnd = false
  private var descriptorsAlong = DescriptorsAlong.possible
  /// How often something was read, as long as that counts.
  private var readings = 0
  /// The client sends nothing more; what it sent is still answered.
  var hasEnded = false
  /// The client is gone altogether.
  var isHungUp = false
  /// Nothing more is read; it is closed once its output is sent.
  var isClosing = false
  /// The last answer is sent and the writing side closed; what still comes is thrown away.
  var isDraining = false
  /// The service manager has it too, so that closing it here is not enough.
  var isStored = false
  /// A stop hands it over as it is: nothing more is done with it.
  var isParked = false
  /// What is written down of it for the next run of the daemon is that it is plain.
  private var isKeptPlain = false
  /// It waits for its next turn in the list of its user.
  var isWaitingForTurn = false
  /// The output that counts among what is held for its user, in bytes.
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
    if holdsSecret { output.wipe() }
  }

  /// Received and not yet carried out. It is taken out while it changes: then nobody else can change it, and no use of it
  /// has to look whether somebody does, which costs more than most of them.
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

  /// To be sent; taken out while it changes, as ``input`` is.
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

  /// Whether another request may be carried out now, or has to wait for output to be read or changes to be done. One at a
  /// time always may: no client has to wait for what another one of its user does not read.
  var hasRoom: Bool {
    !isClosing && !awaitsLast && !holdsSecret && !hasLongAnswer && inFlight < share.limits.changesPerConnection
      && (!hasOutput || output.count - sent < share.limits.outputPerConnection) && (share.hasRoom || isIdle)
  }

  /// What the kernel is to tell of.
  var wantedInterest: ReadinessSet.Interest {
    hasOutput && sent < output.count && !isParked ? .newsAndRoom : .news
  }

  /// Whether a request is there that nothing keeps from being carried out.
  var canGoOn: Bool { hasInput && hasRoom && inFlight == 0 && searched < input.count }

  /// Whether the next piece of a long answer is to be made.
  var wantsPiece: Bool { hasLongAnswer && (!hasOutput || isWriting) }

  /// Whether a long answer is being written that waits for nobody.
  var isWriting: Bool { hasLongAnswer && outgoing?.waitsForReader == false }

  /// Whether it is at rest but for what may have come: nothing is under way or waits, in either direction.
  var isAtRest: Bool { isQuiet && (particulars == nil || (!hasLongAnswer && !isSubscribed && left == nil)) }

  /// The same, but for what few connections have.
  private var isQuiet: Bool {
    !hasInput && !hasOutput && inFlight == 0
      && !isClosing && !hasEnded && !isHungUp && !isParked && !isWaitingForTurn
  }

  /// Reads what has arrived, once.
  ///
  /// - Returns: how many bytes of the buffer it filled, 0 at the end of the stream; nil where nothing has arrived.
  func take(into buffer: borrowing ByteBuffer, atMost limit: Int) throws(SystemError) -> Int? {
    var isCut = false
    let count =
      descriptorsAlong == .none
      ? try descriptor.receive(into: buffer, atMost: limit)
      : try descriptor.receive(into: buffer, atMost: limit, isCut: &isCut)
    if let count {
      mayHaveInput = count == min(limit, buffer.count) || isCut || (count > 0 && readsToTheEnd)
    } else {
      mayHaveInput = false
    }
    if descriptorsAlong != .none { lookForDescriptors(isCut) }
    return count
  }

  /// Whether descriptors may come with the bytes. To look for them makes reading dearer.
  private enum DescriptorsAlong {
    case possible
    /// None are sent any more, but what was sent before is not all read.
    case refused
    case none
    /// They have come, or the kernel cannot refuse them.
    case always
  }

  /// Has the kernel refuse descriptors once a client has asked much, and never sent one.
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

  /// Whether there are events for it: none any more once it is to be closed, and none behind a secret or
  /// within a long answer.
  func wantsEvents(_ log: EventLog) -> Bool {
    subscription?.isCurrent(log) == false && !isClosing && !holdsSecret && !hasLongAnswer
  }

  /// Whether it is told of anything.
  var isSubscribed: Bool { if let particulars { particulars.isSubscribed } else { false } }

  /// Whether a long answer is on its way.
  var hasLongAnswer: Bool { if let particulars { particulars.hasLongAnswer } else { false } }

  /// Whether more of what it sends is read now.
  var wantsInput: Bool {
    hasRoom && !hasEnded && left != 0 && !isWaitingForTurn && (!hasInput || input.count < share.limits.lineLength)
  }

  /// Whether the process that connected has ended, and everything it sent was read.
  var isOrphaned: Bool { left == 0 && !isClosing && !hasEnded && !isHungUp }

  /// Nothing is under way, and nothing waits to be sent.
  var isIdle: Bool { inFlight == 0 && (!hasOutput || sent == output.count) && !hasLongAnswer }
}

/// Who connected, held once for the connections of a process.
final class HeldPeer {
  let peer: Peer
  /// What it is known by where answers are, once it has asked; see ``KnownAnswers``.
  var number: KnownAnswers.PeerNumber = 0

  /// Whom it is charged to; known by itself, because to take it out of the peer copies that.
  let principal: Principal
  /// Whether it may have of what is kept in reserve.
  let usesReserve: Bool

  init(_ peer: Peer, _ principal: Principal, usesReserve: Bool = false) {
    self.peer = peer
    self.principal = principal
    self.usesReserve = usesReserve
  }
}

// MARK: - Particulars

extension Connection {
  /// What few connections have, and only for a time: in an object of its own, so that the others need no memory for it.
  private final class Particulars {
    var left: Int?
    var outgoing: LongAnswer?
    var subscription: Subscription?
    var keptShape: Shape?
    var drained = 0

    var hasLongAnswer: Bool { outgoing != nil }
    /// Not `!= nil`: subscriptions can be compared, and so they would be.
    var isSubscribed: Bool {
      if case .some = subscription { true } else { false }
    }

    var isEmpty: Bool {
      left == nil && !hasLongAnswer && !isSubscribed && keptShape == nil && drained == 0
    }
  }

  /// Changes one of them; the object goes with the last.
  ///
  /// - Parameter isThere: whether that one is there afterwards.
  private func change(_ isThere: Bool, _ body: (Particulars) -> Void) {
    guard isThere || particulars != nil else { return }
    let changed = particulars ?? Particulars()
    body(changed)
    particulars = changed.isEmpty ? nil : changed
  }

  /// How much of what its process sent before its end was not read yet; nil as long as that lives.
  var left: Int? {
    get { particulars?.left }
    set { change(newValue != nil) { $0.left = newValue } }
  }

  /// A long answer on its way out, piece by piece behind the output. Nothing else is answered meanwhile.
  var outgoing: LongAnswer? {
    get { particulars?.outgoing }
    set { change(newValue != nil) { $0.outgoing = newValue } }
  }

  /// What it is told of, once it subscribed.
  var subscription: Subscription? {
    get { particulars?.subscription }
    _modify {
      guard let particulars else {
        var new: Subscription?
        yield &new
        return change(new != nil) { $0.subscription = new }
      }
      // Taken out while it changes, as ``input`` is.
      var subscription = particulars.subscription
      particulars.subscription = nil
      defer {
        particulars.subscription = subscription
        if particulars.isEmpty { self.particulars = nil }
      }
      yield &subscription
    }
  }

  /// Whether it is at rest, and has all but this event.
  func awaitsOnly(_ line: EventLog.Line) -> Bool {
    guard isQuiet, !mayHaveInput, let particulars, particulars.outgoing == nil, particulars.left == nil else {
      return false
    }
    return particulars.subscription?.awaitsOnly(line) == true
  }

  /// Goes on behind the one event that it awaits.
  ///
  /// - Returns: whether it wants that.
  func pass(_ line: EventLog.Line) -> Bool { particulars?.subscription?.pass(line) == true }

  /// How much was thrown away.
  var drained: Int {
    get { particulars?.drained ?? 0 }
    set { change(newValue > 0) { $0.drained = newValue } }
  }

  /// Whether its shape is the plain one, and that is what is written down.
  var isKeptAsItIs: Bool { isKeptPlain && particulars == nil && !hasInput && !hasOutput && !hasEnded && !isClosing }

  /// What is written down of it for the next run of the daemon.
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
  /// What tells whether what is written down of a connection still holds.
  struct Shape: Equatable {
    /// It has neither input nor output that waits, and goes on.
    let isPlain: Bool
    let starts: [Int64]?
    let lag: Subscription.Lag?

    /// That of most connections.
    static let plain = Shape(isPlain: true, starts: nil, lag: nil)
  }

  /// Its shape now.
  var shape: Shape {
    Shape(
      isPlain: !hasInput && !hasOutput && !hasEnded && !isClosing, starts: subscription?.starts,
      lag: subscription?.lag)
  }
}
