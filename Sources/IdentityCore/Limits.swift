/// Every bound of the daemon, with its reason. What `[Limits]` can set is in ``Limits``; the rest is fixed here.
package enum Bound {
  /// The longest request line, its end included, in bytes (protocol, section 1).
  package static let lineLength = 65_536
  /// Words in one line. The longest verb has 5 operands and attributes; `attr.NAME=` may come a few dozen times.
  package static let wordsPerLine = 256
  /// UUIDs one `get uuid` may ask for (protocol, section 3): the reply is 390 kB.
  package static let uuidsPerRequest = 10_000
  /// Changes of one connection that may be at the writer at a time: enough for a pipeline to share its commits.
  package static let changesInFlight = 128
  /// Output that may wait for a client before its next requests are left unread, in bytes.
  package static let outputPerConnection = 262_144
  /// Requests of one connection that are answered before the others get their turn.
  package static let requestsPerTurn = 256
  /// Events taken from the kernel in one turn of the loop.
  package static let readinessPerTurn = 256
  /// Bytes of a client's own words that an error text repeats, so that no line can be made to grow.
  package static let quotedBytes = 64
  /// Bytes still read and thrown away behind the last answer, so that a client that is still sending reads that answer
  /// and not a reset.
  package static let drainedBytes = 4_194_304
  /// How long a connection may be in that state, in milliseconds; it is looked at that often.
  package static let drainMilliseconds = 1_000
  /// How long a stop waits for clients to take their last replies, in milliseconds; the shipped unit allows 30 seconds.
  package static let stopMilliseconds = 5_000
  /// How long accepting pauses when the process or the system is out of descriptors or memory, in milliseconds.
  package static let acceptPauseMilliseconds = 100
  /// How long no further refused connection is logged after one was, in milliseconds.
  package static let refusalLogMilliseconds = 10_000
  /// How long a store that failed is left alone between two attempts to write it anew, in milliseconds.
  package static let healPauseMilliseconds = 1_000
  /// A configuration or key file larger than this is not one, in bytes.
  package static let fileLength = 1_048_576
}

/// The bounds that an administrator can set in `[Limits]`.
package struct Limits: Equatable, Sendable {
  /// Connections in all. Each costs a descriptor; the shipped unit allows 16,384 descriptors.
  package var connections = 4_096
  /// Connections of one user who is not root: a quarter of all, so that four users are needed to fill the daemon.
  package var connectionsPerUser = 1_024
  /// Places among `connections` that only root can take, so that an administrator always gets in.
  package var reservedConnections = 16

  /// The bounds as shipped.
  package init() {}
}
