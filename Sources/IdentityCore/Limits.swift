/// Every bound of the daemon, with its reason. What `[Limits]` can set is in ``Limits``; the rest is fixed here.
package enum Bound {
  /// The longest request line, its end included, in bytes (protocol, section 1); ``Limits/lineLength`` is what holds.
  package static let lineLength = 65_536
  /// Words in one line: an item may have ``attributesPerItem`` attributes, and a dozen words besides.
  package static let wordsPerLine = 256
  /// UUIDs one `get uuid` may ask for (protocol, section 3): the reply is 390 kB.
  package static let uuidsPerRequest = 10_000
  /// Bytes of a client's own words that an error text repeats, so that no line can be made to grow.
  package static let quotedBytes = 64
  /// The longest word in a verb's place that an error text repeats, in bytes: no verb is as long.
  package static let shownWordLength = 32
  /// Bytes still read and thrown away behind the last answer, so that a client that is still sending reads that answer
  /// and not a reset.
  package static let drainedBytes = 4_194_304
  /// How long a connection may be in that state, in milliseconds; it is looked at that often.
  package static let drainMilliseconds = 1_000
  /// How long a stop waits for clients to take their last replies, in milliseconds; the shipped unit allows 30 seconds.
  package static let stopMilliseconds = 5_000
  /// Changes that are written in one transaction while there are several users: it takes some three times as long as one
  /// of a single change, and another user's change waits for it.
  package static let changesPerSharedCommit = 8
  /// Connections that a stop still takes, which came before it.
  package static let lastAccepts = 256
  /// How long accepting pauses when the process or the system is out of descriptors or memory, in milliseconds.
  package static let acceptPauseMilliseconds = 100
  /// How long no further refused connection is logged after one was, in milliseconds.
  package static let refusalLogMilliseconds = 10_000
  /// How long a store that failed is left alone between two attempts to write it anew, in milliseconds.
  package static let healPauseMilliseconds = 1_000
  /// How often a client is heard before the kernel is told to refuse descriptors that it sends along: who did not until
  /// then asks a lot, and sends none.
  package static let readingsBeforeRefusal = 1_024
  /// Events that are kept at least (protocol, section 7), and how many more come together before the oldest go.
  package static let keptEvents = 10_000
  /// See ``keptEvents``: letting go of them costs a write, so it is not done for each.
  package static let spareEvents = 1_024
  /// Events in memory beyond those that have to be kept, in bytes of all: so that what waits for a slow subscriber is still
  /// there while others go on.
  package static let eventLogLength = 4_194_304
  /// What may wait for a subscriber before it gets no more, in bytes (protocol, section 7).
  package static let eventsPerSubscriber = 1_048_576
  /// Events that go to a subscriber in one piece, in bytes: more is fetched when that is read.
  package static let eventsPerTurn = 16_384
  /// Kept events that are looked at for a subscriber in one piece: which of them it may see takes time too.
  package static let eventsLookedAt = 256
  /// Subscribers that get their events in a turn of their user: as long as they take, the next requests wait.
  package static let subscribersPerTurn = 8
  /// Apps that are uninstalled together, and identifiers that the history lets go of together: others wait for it.
  package static let forgottenTogether = 512
  /// How often the store learns which apps were used, in milliseconds; it learns of each once a day.
  package static let useMilliseconds = 900_000
  /// Devices of one account.
  package static let devices = 4_096
  /// The longest name that is stored (an account's, a device's, an app's), in bytes.
  package static let nameLength = 255
  /// The longest secret of an item, in bytes (protocol, section 4).
  package static let secretLength = 32_768
  /// The longest label, and the longest value of an item's attribute, in bytes.
  package static let itemTextLength = 1_024
  /// The longest name of an item's attribute, in bytes.
  package static let attributeNameLength = 64
  /// Attributes of one item.
  package static let attributesPerItem = 64
  /// The longest push token, in bytes (protocol, section 6).
  package static let tokenLength = 4_096
  /// Push tokens of one app, whose providers' names are the app's choice; a user's own services have as many together.
  package static let tokensPerApp = 256
  /// Long answers of one user that are written at a time: each holds all that it will say. Behind these its other
  /// connections wait.
  package static let longAnswersAtOnce = 4
  /// Push tokens in all: they are in memory.
  package static let tokens = 65_536
  /// Releases in the history of one app, and of a user's own services together; then the one that was not installed for
  /// the longest time goes.
  package static let releasesPerApp = 1_000
  /// Releases in the histories of all apps: they are in memory.
  package static let releases = 1_000_000
  /// Sessions of one app whose report is known, so that each is told the same again: that many of it may live at a time.
  package static let sessionsPerApp = 32
  /// Claims of one app, and of a user's own services together; then the oldest goes that is of another version.
  package static let claimsPerApp = 10_000
  /// Claims of all apps: they are in memory.
  package static let claims = 1_000_000
  /// A backup: it is held in memory, whole, when it is made and when it is brought back. In bytes.
  package static let backupLength = 268_435_456
  /// Backups on their way out at a time.
  package static let backups = 8
  /// What goes out of a backup in one row, in bytes.
  package static let backupPiece = 24_576
  /// Control groups of which it is known what they say, so that they are not looked up for each connection; some 100 bytes
  /// each.
  package static let peerGroups = 1_024
  /// Connections that a restart keeps; the shipped unit allows as many descriptors.
  package static let rememberedConnections = 16_384
  /// Users whose ranges of subordinate users are asked about, where the name service knows them by their owner.
  package static let rangeOwners = 4_096
  /// How long after its start the daemon gives back what only that needed, in milliseconds: those who waited for it are
  /// answered first.
  package static let releaseMemoryMilliseconds = 500
  /// How long a new connection is waited for before its process is watched and the service manager has it to keep, in
  /// milliseconds: most are gone by then.
  package static let settleConnectionMilliseconds = 50
  /// How long a stop that hands the connections over waits for clients to take their output, in milliseconds.
  package static let handoverMilliseconds = 250
  /// How long a stop waits for the service manager to take what it is given, in milliseconds.
  package static let barrierMilliseconds = 2_000
  /// How long the manifests' folders have to be quiet before they are read, in milliseconds: an upgrade that removes a
  /// file and writes it again within this time is no reinstallation.
  package static let settleMilliseconds = 250
  /// How long they may be restless before they are read all the same, in milliseconds.
  package static let restlessMilliseconds = 2_000
  /// How long until they are read again while something is wrong with them, in milliseconds.
  package static let surveyAgainMilliseconds = 5_000
  /// Looks at what the kernel has to tell before turns are given: as many as it takes for 16,384 connections.
  package static let looksAtOnce = 64
  /// Connections of the only user that are served before it is looked how long that took: to look costs a tenth of it.
  package static let servedBetweenLooks = 8
  /// Manifests that are read: each costs memory.
  package static let manifests = 4_096
  /// Entries that may wait to be logged: a first look may find that many ``manifests``, and each is an app to tell of.
  package static let logEntries = 4_352
  /// Places among ``logEntries`` that only a warning or worse can take, so that it is not lost among what matters less.
  package static let logReservedEntries = 256
  /// What may wait to be logged, in bytes: some 400 for each of ``logEntries``.
  package static let logBytes = 2_097_152
  /// Bytes among ``logBytes`` for the same purpose as ``logReservedEntries``.
  package static let logReservedBytes = 131_072
  /// The longest text in the log, in bytes: a path fits (PATH_MAX), and the journal does not divide it into several
  /// entries.
  package static let logTextLength = 8_192
  /// How long the end of the process waits for what was logged to be written, in milliseconds.
  package static let logEndMilliseconds = 1_000
  /// Apps whose requests are counted beyond their connections: their names are the users' choice, and each takes memory.
  package static let countedApps = 1_024
  /// Apps in one answer to `stats apps=yes`: those that ask most.
  package static let appsInStats = 64
  /// Of so many turns one is measured: to look at the clock costs as much as a tenth of one.
  package static let turnsBetweenMeasurements = 64
  /// A configuration or key file larger than this is not one, in bytes.
  package static let fileLength = 1_048_576
}

/// How much is done before the loop turns to somebody else.
package struct TurnBound: Sendable {
  /// Requests of one connection, before the others of its user get their turn.
  package let requests: Int
  /// Connections of one user that are looked at.
  package let connections: Int
  /// How long a user's turn may be, in microseconds. It ends between two connections; what it takes beyond that it takes
  /// from its next, where there are others.
  package let microseconds: UInt64
  /// Bytes read at a time from a connection.
  package let readLength: Int
  /// How much is made of a long answer, in bytes: the last row may go beyond.
  package let pieceLength: Int

  /// While one user is there: so long another one waits to get in.
  package static let alone = TurnBound(
    requests: 256, connections: 256, microseconds: 500, readLength: Bound.lineLength,
    pieceLength: 65_536)
  /// While there are several: each waits for the others' turns. What is read at a time is some hundred requests.
  package static let shared = TurnBound(
    requests: 16, connections: 8, microseconds: 50, readLength: 4_096, pieceLength: 8_192)
}

/// The bounds that an administrator can set in `[Limits]`.
package struct Limits: Equatable, Sendable {
  /// Connections in all. Each costs a descriptor, and each process that has some one more; the shipped
  /// unit allows 65,536.
  package var connections = 4_096
  /// Connections of one user who is not root: a quarter of all, so that four users are needed to fill the daemon.
  package var connectionsPerUser = 1_024
  /// Places among `connections` that only root can take, so that an administrator always gets in.
  package var reservedConnections = 16
  /// The part of connections, subscribers, apps and items that is left to system users, and to those who have nothing yet,
  /// in percent.
  package var reservePercent = 10
  /// The longest request line, its end included, in bytes: what the protocol allows. Each connection may hold that much
  /// of a line that is not at its end.
  package var lineLength = Bound.lineLength
  /// Changes of one connection that may be at the writer at a time: enough for a pipeline to share its commits.
  package var changesPerConnection = 128
  /// Changes of one user who is not root that may be at the writer at a time: each may hold a secret, so that is 32 MiB.
  package var changesPerUser = 1_024
  /// Changes that are written in one transaction, where one user alone is there.
  package var changesPerCommit = 512
  /// Output that may wait for a client before its next requests are left unread, in bytes.
  package var outputPerConnection = 262_144
  /// The same for all connections of one user who is not root: those of 64 clients that do not read.
  package var outputPerUser = 16_777_216
  /// Subscribers in all. Each is looked at for each event.
  package var subscribers = 1_024
  /// Subscribers of one user who is not root: a quarter of all.
  package var subscribersPerUser = 256
  /// Items of all apps together: what is said of them is in memory.
  package var items = 1_000_000
  /// Their size together, in bytes; an app that was forgotten leaves its items.
  package var itemBytes = 4_294_967_296
  /// Items that an app may have that has a manifest or is a system service.
  package var itemsPerApp = 1_000
  /// The size of such an app's items together, in bytes: secrets, and all that is said of them, which is held in memory.
  package var itemBytesPerApp = 4_194_304
  /// Items that the other apps of one principal may have together.
  package var itemsPerUser = 4_000
  /// The size of these together, in bytes.
  package var itemBytesPerUser = 16_777_216
  /// Apps without a manifest in all.
  package var apps = 16_384
  /// Apps without a manifest that one principal may be: their names are its choice.
  package var appsPerUser = 1_024
  /// Identifiers of apps without a manifest that the history keeps once these apps were forgotten.
  package var history = 100_000
  /// The same of one principal: an app may forget itself as often as it likes.
  package var historyPerUser = 1_000

  /// The bounds as shipped.
  package init() {}

  /// Computes how much of a resource one principal may have now: its fair share, and no more than the bound of each.
  ///
  /// - Parameters:
  ///   - total: how much there is in all.
  ///   - bound: the most that any principal may have.
  ///   - used: how much all have together, `own` included.
  ///   - own: how much this principal has, which is some.
  ///   - principals: how many principals have some, this one included.
  ///   - usesReserve: whether the reserve is shared out too.
  package func share(
    of total: Int, atMost bound: Int, used: Int, own: Int, principals: Int, usesReserve: Bool = false
  ) -> Int {
    let shared = usesReserve ? total : total - total * reservePercent / 100
    return min(bound, FairShare.most(of: shared, usedByOthers: used - own, others: principals - 1))
  }
}
