import IdentityCore

/// The state of a connection for the next run of the daemon: everything about it that is not in the kernel.
struct HandoverRecord: Equatable {
  /// The inode number of the socket, which is the same for every copy of its descriptor.
  var inode: UInt64
  var peer: Peer
  var subscription: Subscription?
  /// Whether the client sends nothing more.
  var hasEnded = false
  /// Whether the connection is closed once its output is sent.
  var isClosing = false
  /// Input that was received and not carried out.
  var input: [UInt8] = []
  /// Output that was not sent.
  var output: [UInt8] = []

  /// The room for the rest of a record and for padding to whole pages, in bytes. A growing array would leave copies of
  /// input and output in memory.
  private static let room = 8_192

  /// The encoded record. Numbers take eight bytes, least significant byte first. A byte string is preceded by
  /// its length.
  var bytes: [UInt8] {
    var writer = RecordWriter(room: input.count + output.count + Self.room)
    writer.append(inode)
    writer.append(peer.app.bytes)
    writer.append(UInt64(peer.userID))
    writer.append(UInt64(peer.groupID))
    writer.append(UInt64(UInt32(bitPattern: peer.processID)))
    writer.append(peer.place.unit?.bytes)
    writer.append(peer.place.owner.map(UInt64.init))
    writer.append(peer.place.container?.bytes)
    writer.append(peer.place.hasOtherNamespaces ? 1 : 0)
    switch peer.session {
    case nil: writer.append(0)
    case .invocation(let id)?:
      writer.append(1)
      writer.append(id.high)
      writer.append(id.low)
    case .process(let number, let start)?:
      writer.append(2)
      writer.append(UInt64(UInt32(bitPattern: number)))
      writer.append(start)
    case .controlGroup(let number)?:
      writer.append(3)
      writer.append(number)
    case .onlyProcess(let number, let inode)?:
      writer.append(4)
      writer.append(UInt64(UInt32(bitPattern: number)))
      writer.append(inode)
    }
    writer.append(peer.isAdmin ? 1 : 0)
    writer.append(peer.isMonitor ? 1 : 0)
    writer.append(subscription == nil ? 0 : 1)
    if let subscription {
      for start in subscription.starts { writer.append(UInt64(bitPattern: start)) }
      writer.append(UInt64(bitPattern: subscription.position))
      writer.append(subscription.lag == nil ? 0 : 1)
      if let lag = subscription.lag {
        for number in [lag.after, lag.missed, lag.last] { writer.append(UInt64(bitPattern: number)) }
      }
    }
    writer.append(hasEnded ? 1 : 0)
    writer.append(isClosing ? 1 : 0)
    writer.append(input)
    writer.append(output)
    return writer.bytes
  }
}

extension HandoverRecord {
  /// Decodes a record. Returns nil if the bytes are not exactly one valid record.
  init?(_ bytes: [UInt8]) {
    var reader = RecordReader(bytes)
    guard let inode = reader.number(), let app = reader.text(), let user: UInt32 = reader.exact(),
      let group: UInt32 = reader.exact(), let process: UInt32 = reader.exact(), let unit = reader.optionalText(),
      let owner = reader.optionalNumber(), let container = reader.optionalText(),
      let hasOtherNamespaces = reader.flag(),
      let session = reader.session(), let isAdmin = reader.flag(),
      let isMonitor = reader.flag(), let subscribes = reader.flag()
    else { return nil }
    var subscription: Subscription?
    if subscribes {
      guard let read = reader.subscription() else { return nil }
      subscription = read
    }
    guard let hasEnded = reader.flag(), let isClosing = reader.flag(), let input = reader.bytes(),
      let output = reader.bytes(), reader.isAtEnd
    else { return nil }
    var placeOwner: UInt32?
    if let number = owner.value {
      guard let exact = UInt32(exactly: number) else { return nil }
      placeOwner = exact
    }
    self.init(
      inode: inode,
      peer: Peer(
        app: app, userID: user, groupID: group, processID: Int32(bitPattern: process),
        place: PeerPlace(
          unit: unit.value, owner: placeOwner, container: container.value,
          hasOtherNamespaces: hasOtherNamespaces),
        session: session.value, isAdmin: isAdmin, isMonitor: isMonitor),
      subscription: subscription, hasEnded: hasEnded, isClosing: isClosing, input: input, output: output)
  }
}

/// An encoder of records.
struct RecordWriter {
  private(set) var bytes: [UInt8] = []

  /// - Parameter room: the number of bytes to reserve, so that the array does not grow.
  init(room: Int = 0) { bytes.reserveCapacity(room) }

  mutating func append(_ number: UInt64) {
    for shift in stride(from: 0, to: 64, by: 8) { bytes.append(UInt8(truncatingIfNeeded: number >> shift)) }
  }

  mutating func append(_ content: [UInt8]) {
    append(UInt64(content.count))
    bytes += content
  }

  /// Appends an optional value: 0 for nil, else 1 and the value.
  mutating func append(_ content: [UInt8]?) {
    append(content == nil ? 0 : 1)
    if let content { append(content) }
  }

  mutating func append(_ number: UInt64?) {
    append(number == nil ? 0 : UInt64(1))
    if let number { append(number) }
  }
}

/// A decoder of records. Each function returns nil if its value is invalid or missing.
struct RecordReader {
  /// A value that may be absent. Distinguishes an absent value from one that could not be decoded.
  struct Optional<Value> {
    let value: Value?
  }

  private let content: [UInt8]
  private var place = 0

  init(_ content: [UInt8]) { self.content = content }

  var isAtEnd: Bool { place == content.count }

  mutating func number() -> UInt64? {
    guard content.count - place >= 8 else { return nil }
    var number: UInt64 = 0
    for offset in 0..<8 { number |= UInt64(content[place + offset]) << (8 * offset) }
    place += 8
    return number
  }

  mutating func bytes() -> [UInt8]? {
    guard let count = number(), count <= content.count - place else { return nil }
    defer { place += Int(count) }
    return Array(content[place..<(place + Int(count))])
  }

  /// Reads a number that fits the type.
  mutating func exact<Number: FixedWidthInteger>() -> Number? { number().flatMap { Number(exactly: $0) } }

  /// Reads 0 or 1.
  mutating func flag() -> Bool? { number().flatMap { $0 > 1 ? nil : $0 == 1 } }

  mutating func text() -> Text? { bytes().flatMap { Text(validating: $0) } }

  mutating func optionalText() -> Optional<Text>? {
    switch number() {
    case 0?: Optional(value: nil)
    case 1?: text().map { Optional(value: $0) }
    default: nil
    }
  }

  mutating func optionalNumber() -> Optional<UInt64>? {
    switch number() {
    case 0?: Optional(value: nil)
    case 1?: number().map { Optional(value: $0) }
    default: nil
    }
  }

  mutating func session() -> Optional<SessionAnchor>? {
    switch number() {
    case 0?: return Optional(value: nil)
    case 1?:
      guard let high = number(), let low = number() else { return nil }
      return Optional(value: .invocation(UUID(high: high, low: low)))
    case 2?:
      guard let process: UInt32 = exact(), let start = number() else { return nil }
      return Optional(value: .process(Int32(bitPattern: process), start: start))
    case 3?:
      guard let group = number() else { return nil }
      return Optional(value: .controlGroup(group))
    case 4?:
      guard let process: UInt32 = exact(), let inode = number() else { return nil }
      return Optional(value: .onlyProcess(Int32(bitPattern: process), inode: inode))
    default: return nil
    }
  }

  mutating func subscription() -> Subscription? {
    var starts: [Int64] = []
    for _ in Topic.allCases {
      guard let start = sequence() else { return nil }
      starts.append(start)
    }
    guard let position = sequence(), let lags = flag() else { return nil }
    guard lags else { return Subscription(starts: starts, position: position, lag: nil) }
    guard let after = sequence(), let missed = sequence(), let last = sequence(), position <= after, after <= last
    else { return nil }
    return Subscription(starts: starts, position: position, lag: .init(after: after, missed: missed, last: last))
  }

  /// Reads the sequence number of an event or a number of events, which is never negative.
  private mutating func sequence() -> Int64? { exact() }
}
