/// The fixed bounds of the daemon, each with its reason. ``Limits`` holds the bounds that `[Limits]` can set.
package enum Bound {
  /// The maximum length of a request line in the protocol, in bytes, with its end. ``Limits/lineLength`` is enforced.
  package static let lineLength = 98_304
  /// The maximum number of words in a line: ``attributesPerItem`` attributes of an item, and a dozen more words.
  package static let wordsPerLine = 256
  /// The maximum number of UUIDs in one `get uuid` (identityd-protocol(7), section "IDENTIFIERS"). The reply is 390 kB.
  package static let uuidsPerRequest = 10_000
  /// The maximum number of former machines whose identifiers can come back.
  package static let formerMachines = 8
  /// The number of runs of the fleet that are remembered, the present one included.
  ///
  /// A copied device meets messages of a run that the other one began before the copy was made.
  package static let fleetRuns = 16
  /// The maximum number of words that the fleet's service shows in `status`, besides its state.
  package static let fleetWords = 16
  /// The number of bytes of a client's word that an error text repeats, so that clients cannot inflate a reply line.
  package static let quotedBytes = 64
  /// The maximum length of a word that an error text repeats in place of a verb, in bytes. No verb is that long.
  package static let shownWordLength = 32
  /// The maximum number of bytes to read and discard after the last answer.
  ///
  /// A client that is still sending then reads that answer instead of getting a connection reset.
  package static let drainedBytes = 4_194_304
  /// The maximum time for which input is discarded after the last answer, in milliseconds.
  package static let drainMilliseconds = 1_000
  /// The time for which a stop waits for clients to read their last replies, in milliseconds.
  ///
  /// The shipped unit allows 30 seconds for the whole stop.
  package static let stopMilliseconds = 5_000
  /// The maximum number of changes in a transaction while several principals are connected.
  ///
  /// A transaction of this size takes about three times as long as one with a single change, and the changes of other
  /// principals wait for it.
  package static let changesPerSharedCommit = 8
  /// The maximum number of pending connections that a stop still accepts.
  package static let lastAccepts = 256
  /// The maximum number of connections that wait to be accepted: room for the clients of a whole boot. The kernel caps
  /// the value at net.core.somaxconn.
  package static let backlog: Int32 = 4_096
  /// The number of connections that the fleet's service accepts before its other work gets a turn.
  ///
  /// A refusal takes less than 0.1 ms. Fewer would let a flood of connections wait for each message of a broker.
  package static let acceptsAtOnce = 64
  /// The maximum number of connections at the socket of the fleet's service. Each takes two descriptors, and the
  /// default limit of a service is 1,024.
  package static let controlConnections = 128
  /// The maximum number of connections of an admin other than root at the socket of the fleet's service: a quarter.
  package static let controlConnectionsPerUser = 32
  /// The largest overdraft of a principal that the arrival of its connections adds to, in microseconds: a hundred turns.
  package static let arrivalOverdraft: UInt64 = 5_000
  /// The pause in accepting when the process or the system is out of descriptors or memory, in milliseconds.
  package static let acceptPauseMilliseconds = 100
  /// The minimum time between two attempts to rewrite a store that failed, in milliseconds.
  package static let healPauseMilliseconds = 1_000
  /// The number of reads from a connection after which the kernel is told to refuse descriptors from the client.
  ///
  /// A client with that many requests and no descriptor so far is assumed never to send one.
  package static let readingsBeforeRefusal = 1_024
  /// The number of newest events that are always kept (identityd-protocol(7), section "EVENTS").
  package static let keptEvents = 10_000
  /// The number of events beyond ``keptEvents`` that are dropped together, because dropping costs a write each time.
  package static let spareEvents = 1_024
  /// The size of the events in memory up to which events beyond ``keptEvents`` stay there, in bytes.
  ///
  /// Events that a slow subscriber has not read then remain available while other subscribers go on.
  package static let eventLogLength = 4_194_304
  /// The size of unread events at which a subscriber lags, in bytes (identityd-protocol(7), section "Lag").
  package static let eventBytesPerSubscriber = 1_048_576
  /// The size of the events that a subscriber gets at a time, in bytes. More follows once the subscriber has read them.
  package static let eventBytesPerTurn = 16_384
  /// The number of kept events that are examined for a subscriber at a time. Visibility checks take time too.
  package static let eventsLookedAt = 256
  /// The number of subscribers that get events in one turn of their principal. Later requests wait for all of them.
  package static let subscribersPerTurn = 8
  /// The number of apps that one request uninstalls, and of identifiers dropped together.
  package static let forgottenTogether = 512
  /// The days on which the daemon runs, after the last renewal on what may be a copy, for which items and push tokens that
  /// were left to the original are kept.
  package static let leftDays: Int64 = 30
  /// The maximum number of records of device identifiers that were left to other machines. The items of the oldest record
  /// are deleted first: only the last ``formerMachines`` can come back.
  package static let leftDevices = 64
  /// The maximum number of proof keys: three for each of the machines that can come back, which is more than ever are kept
  /// for one of them. The oldest ends first.
  package static let proofKeys = 3 * (formerMachines + 1)
  /// The number of proofs that a principal, or a unit before its start, may have in a second, and at once.
  package static let proofsPerSecond = 20
  package static let proofsAtOnce = 100
  /// The time for which a service manager's request for a proof waits for its turn, in microseconds, and that after which
  /// it tries again.
  package static let proofTurnMicroseconds: UInt64 = 60_000_000
  package static let proofPauseMicroseconds: UInt64 = 50_000
  /// The maximum number of audiences with a name for credentials.
  package static let proofAudiences = 64
  /// The number of principals and units whose rate is kept before those without a recent proof are forgotten.
  package static let proofRates = 1_024
  /// The maximum number of proofs and keys in work. Each takes up to a second with a key in hardware.
  package static let proofsInWork = 64
  /// The longest wait for a proof, in microseconds, before the key counts as unavailable.
  package static let proofMicroseconds: UInt64 = 5_000_000
  /// The maximum number of ended identifiers of one level and owner in the history. The oldest are dropped first.
  ///
  /// A start reads all of them. A renewal each day reaches the bound in eleven years.
  package static let endedIdentifiers = 4_096
  /// The maximum number of ended identifiers that one change drops beyond ``endedIdentifiers``.
  ///
  /// A store of an earlier release may have kept any number. Other changes wait while these are removed.
  package static let endedTogether = 64
  /// The number of items that a step of `item delete` deletes. Other changes wait for a step to end, which takes the
  /// writer about 1.2 ms of processor time.
  package static let changesPerStep = 32
  /// The number of apps that a step of `app forget` uninstalls, each with several changes.
  package static let appsPerStep = 8
  /// The number of apps examined in a step of `ForgetUnused=`.
  package static let appsPerSearch = 2_048
  /// The number of elements of a list or search that are examined between two reads of the clock.
  ///
  /// An item with 64 attributes takes 6 µs beside 63 conditions, which is many times as long as a read of the clock.
  package static let elementsBetweenLooks = 16
  /// The interval at which the store learns which apps were used, in milliseconds. Each app is recorded once a day.
  package static let useMilliseconds = 900_000
  /// The maximum number of devices of an account. Twice as many messages of the fleet are kept.
  package static let devices = 16_384
  /// The maximum length of a message of the fleet, in bytes (identityd-protocol(7), section "The fleet").
  package static let messageLength = 4_016
  /// The maximum length of a stored name, such as that of an account, a device or an app, in bytes.
  package static let nameLength = 255
  /// The maximum length of an item's secret, in bytes (identityd-protocol(7), section "ITEMS").
  package static let secretLength = 65_536
  /// The maximum number of items in an answer with secrets.
  package static let secretsPerAnswer = 64
  /// The maximum size of the items in an answer with several secrets, in bytes; see ``Item/size``.
  package static let secretsAnswerLength = 262_144
  /// The maximum length of an item's label and of an attribute value, in bytes.
  package static let itemTextLength = 1_024
  /// The maximum length of an attribute name of an item, in bytes.
  package static let attributeNameLength = 64
  /// The maximum number of attributes of an item.
  package static let attributesPerItem = 64
  /// The maximum length of a push token, in bytes (identityd-protocol(7), section "PUSH TOKENS").
  package static let tokenLength = 4_096
  /// The maximum number of push tokens of an app, or of all apps without a manifest of one principal.
  ///
  /// The bound is needed because apps choose the names of providers.
  package static let tokensPerApp = 256
  /// The maximum number of long answers of one principal that are written at a time.
  ///
  /// A long answer holds all of its content in memory. The principal's other connections wait behind these answers.
  package static let longAnswersAtOnce = 4
  /// The length of the answer that makes the start of a unit fail, in bytes. systemd refuses a credential of this length,
  /// and has no other way to learn that there is none.
  package static let failingAnswer = 1_048_576
  /// The time for such an answer, in milliseconds. A client that does not read it must not keep others waiting.
  package static let failingAnswerMilliseconds = 30_000
  /// The number of connections beyond all bounds that root's requests for credentials may take.
  package static let credentialConnections = 64
  /// The maximum number of such answers that are being sent to the clients of a principal. The kernel holds some of each.
  package static let failingAnswersAtOnce = 8
  /// The maximum number of push tokens of all apps together. Tokens are held in memory.
  package static let tokens = 65_536
  /// The maximum number of releases in the history of an app, or of all apps without a manifest of one principal.
  ///
  /// Beyond that, the release whose last installation is the longest ago is dropped.
  package static let releasesPerApp = 1_000
  /// The maximum number of releases in all histories together. Releases are held in memory.
  package static let releases = 1_000_000
  /// The number of sessions of an app whose reports are kept, so that a repeated report gets the same answer.
  ///
  /// That many sessions of an app may be alive at a time.
  package static let sessionsPerApp = 32
  /// The maximum number of claims of an app, or of all apps without a manifest of one principal.
  ///
  /// Beyond that, the oldest claim of another version is dropped.
  package static let claimsPerApp = 10_000
  /// The maximum number of claims of all apps together. Claims are held in memory.
  package static let claims = 1_000_000
  /// The maximum length of a backup, in bytes. A whole backup is held in memory while it is made or restored.
  package static let backupLength = 268_435_456
  /// The maximum number of backups that are sent at a time.
  package static let backups = 8
  /// The time that the writer spends on a backup, or on the verification of one, before it serves others, in
  /// microseconds.
  package static let writerPieceMicroseconds: UInt64 = 2_000
  /// The number of bytes of a backup in one row.
  package static let backupPiece = 24_576
  /// The number of cached cgroups, so that not every connection needs a look-up. An entry takes about 100 bytes.
  package static let peerGroups = 1_024
  /// The maximum number of connections that a restart keeps. The shipped unit allows as many stored descriptors.
  package static let rememberedConnections = 16_384
  /// The maximum number of users for whom a name service that knows ranges by owner is asked for subordinate users.
  package static let rangeOwners = 4_096
  /// The time until memory that only the start needed is released, in milliseconds.
  ///
  /// Clients that waited for the start are answered first.
  package static let releaseMemoryMilliseconds = 500
  /// The delay before the service manager stores a new connection and its process is watched, in milliseconds.
  ///
  /// Most connections have closed by then.
  package static let establishMilliseconds = 50
  /// The time for which a stop that hands connections over waits for clients to read output, in milliseconds.
  package static let handoverMilliseconds = 250
  /// The time for which a stop waits for the service manager to take the stored descriptors, in milliseconds.
  package static let barrierMilliseconds = 2_000
  /// The time without a change in the manifest folders before they are read, in milliseconds.
  ///
  /// An upgrade that removes a file and writes it again within this time is not a reinstallation.
  package static let quietMilliseconds = 250
  /// The time of continuous change after which the manifest folders are read anyway, in milliseconds.
  package static let restlessMilliseconds = 2_000
  /// The time until manifest folders with faults are read again, in milliseconds.
  package static let surveyAgainMilliseconds = 5_000
  /// The time between two looks at a store that cannot be written.
  package static let lookAgainMilliseconds = 5_000
  /// The maximum number of polls of the kernel before turns are given: enough for 16,384 connections.
  package static let looksAtOnce = 64
  /// The number of connections of a sole principal that are served between two reads of the clock.
  ///
  /// A read of the clock costs a tenth of serving a connection.
  package static let servedBetweenLooks = 8
  /// The number of changes from which on a survey of the manifests begins another transaction, at the next app.
  package static let changesPerSurveyCommit = 512
  /// The time by which a start that commits a survey has the service manager wait longer for it, in microseconds. It
  /// is renewed after each transaction.
  package static let startExtensionMicroseconds = 30_000_000
  /// The maximum number of manifests that are read. Each takes memory.
  package static let manifests = 4_096
  /// The maximum number of suspended apps. Beyond that, those suspended longest are uninstalled.
  package static let suspendedApps = 4_096
  /// The maximum number of waiting log entries. A first survey may find ``manifests`` apps and logs each of them.
  package static let logEntries = 4_352
  /// The number of ``logEntries`` reserved for warnings and errors, which less important entries must not displace.
  package static let logReservedEntries = 256
  /// The maximum size of waiting log entries, in bytes: about 400 for each of ``logEntries``.
  package static let logBytes = 2_097_152
  /// The number of ``logBytes`` reserved for warnings and errors.
  package static let logReservedBytes = 131_072
  /// The number of log entries that a principal other than admins may cause at once: those of a login with a hundred new
  /// apps.
  package static let logBurst = 100
  /// The time after which such a principal may cause one more log entry, in milliseconds: some 9,000 entries a day.
  package static let logPauseMilliseconds = 10_000
  /// The number of log entries that all such principals together may cause at once.
  ///
  /// By default the journal suppresses entries of a service beyond 10,000 in 30 seconds. In that time these principals
  /// cause at most 1,300, and a report for each of ``logAccounts``.
  package static let logBurstOfAll = 1_000
  /// The time after which all such principals together may cause one more log entry, in milliseconds.
  package static let logPauseOfAllMilliseconds = 100
  /// The number of principals whose log entries are counted apart, with another count for errors. Further principals
  /// share one count.
  package static let logAccounts = 512
  /// The time until suppressed log entries are reported, in milliseconds.
  package static let logReportMilliseconds = 30_000
  /// The number of ``logBytes`` that entries caused by principals other than admins may take.
  package static let logBytesOfPeers = 524_288
  /// The number of faults of secrets that are remembered as logged. Beyond that, they are logged again.
  package static let loggedFaults = 16_384
  /// The maximum length of a text in the log, in bytes.
  ///
  /// A path (`PATH_MAX`) fits, and the journal does not split a text of this length into several entries.
  package static let logTextLength = 8_192
  /// The time for which the exit of the process waits for the log to be written, in milliseconds.
  package static let logEndMilliseconds = 1_000
  /// The maximum number of apps whose requests stay counted after their connections end.
  ///
  /// Users choose the names of their apps, and each counted app takes memory.
  package static let countedApps = 1_024
  /// The number of apps in an answer to `stats apps=yes`: those with the most requests.
  package static let appsInStats = 64
  /// The interval, in turns, at which a turn is measured. A read of the clock costs as much as a tenth of a turn.
  package static let turnsBetweenMeasurements = 64
  /// The maximum length of a configuration file, manifest or key file, in bytes.
  package static let fileLength = 1_048_576
}

/// The amount of work that the loop does before it turns to another connection or principal.
package struct TurnBound: Sendable {
  /// The number of requests of one connection before the principal's other connections get their turn.
  package let requests: Int
  /// The number of connections of one principal that are served in a turn, and of new ones that are established in it.
  package let connections: Int
  /// The length of a principal's turn, in microseconds. A turn ends between two connections.
  ///
  /// If several principals are connected, an overrun is deducted from the principal's next turn.
  package let microseconds: UInt64
  /// The number of bytes read from a connection at a time.
  package let readLength: Int
  /// The size of a piece of a long answer, in bytes. The last row may exceed this size.
  package let pieceLength: Int
  /// The number of changes, or of answers to changes, of a large transaction that the loop takes in before it looks at the
  /// clock.
  package let changes: Int

  /// The bounds while a single principal is connected. A second principal waits for such a turn to end.
  package static let alone = TurnBound(
    requests: 256, connections: 256, microseconds: 500, readLength: Bound.lineLength,
    pieceLength: 65_536, changes: 64)
  /// The bounds while several principals are connected and wait for each other's turns.
  ///
  /// One read takes in about a hundred requests.
  package static let shared = TurnBound(
    requests: 16, connections: 8, microseconds: 50, readLength: 4_096, pieceLength: 8_192, changes: 8)
}

/// The bounds of the connections.
package struct ConnectionLimits: Equatable, Sendable {
  /// The maximum number of connections.
  ///
  /// Each connection takes a descriptor, and each process with connections takes one more. The shipped unit allows
  /// 65,536 descriptors.
  package var total = 4_096
  /// The maximum number of connections of a principal other than root: a quarter of all.
  ///
  /// It takes at least four principals to use all connections.
  package var perUser = 1_024
  /// The number of connections reserved for root, so that an administrator always gets in.
  package var reserved = 16

  /// Returns the number of connections of all principals together at which a principal gets no further one.
  package func most(for principal: Principal) -> Int { principal.isTrusted ? total : total - reserved }
}

/// The bounds of the items. All of an item but the secret is held in memory.
package struct ItemLimits: Equatable, Sendable {
  /// The most that all apps may have together. The items of a forgotten app remain.
  package var total = ItemTable.Usage(items: 1_000_000, bytes: 4_294_967_296)
  /// The most that an app with a manifest, or a system service, may have.
  ///
  /// The secrets count, and so does the rest of each item.
  package var perApp = ItemTable.Usage(items: 1_000, bytes: 4_194_304)
  /// The most that a principal's apps without a manifest may have together.
  package var perUser = ItemTable.Usage(items: 4_000, bytes: 16_777_216)
}

/// The bounds that an administrator can set in `[Limits]` (identityd.conf(5)).
package struct Limits: Equatable, Sendable {
  package var connections = ConnectionLimits()
  /// The percentage of connections, subscribers, apps and items that is held in reserve.
  ///
  /// The reserve is for system users, and for principals that hold none yet.
  package var reservePercent = 10
  /// The maximum length of a request line, in bytes, line end included. The default is the bound of the protocol.
  ///
  /// Each connection may hold an incomplete line of that length.
  package var lineLength = Bound.lineLength
  /// The maximum number of a connection's changes at the writer: enough for pipelined changes to share commits.
  package var changesPerConnection = 128
  /// The maximum number of changes at the writer of a principal other than root.
  ///
  /// Each change may hold a secret, so the changes take up to 32 MiB.
  package var changesPerUser = 1_024
  /// The maximum number of changes in a transaction while a single principal is connected.
  package var changesPerCommit = 512
  /// The size of unread output at which a client's further requests are left unread, in bytes.
  package var outputPerConnection = 262_144
  /// The maximum size of unread output of a principal other than root, in bytes: that of 64 clients that do not read.
  package var outputPerUser = 16_777_216
  /// The maximum number of subscribers. Each is visited for each event.
  package var subscribers = 1_024
  /// The maximum number of subscribers of a principal other than root: a quarter.
  package var subscribersPerUser = 256
  package var items = ItemLimits()
  /// The maximum number of apps without a manifest in total.
  package var apps = 16_384
  /// The maximum number of apps without a manifest of one principal. The principal chooses the names of these apps.
  package var appsPerUser = 1_024
  /// The maximum number of identifiers of forgotten apps without a manifest in the history.
  package var history = 100_000
  /// The maximum number of identifiers of a principal's forgotten apps in the history.
  ///
  /// The bound is needed because an app may forget itself as often as it likes.
  package var historyPerUser = 1_000

  package init() {}

  /// Returns how much of a resource one principal may hold now: its fair share, but no more than the bound for each.
  ///
  /// - Parameters:
  ///   - total: the total amount of the resource.
  ///   - bound: the most that any principal may hold.
  ///   - used: the amount that all principals hold together, `own` included.
  ///   - own: the amount that this principal holds, which is more than zero.
  ///   - principals: the number of principals that hold some, this one included.
  ///   - usesReserve: whether the principal may use the reserve too.
  package func share(
    of total: Int, atMost bound: Int, used: Int, own: Int, principals: Int, usesReserve: Bool = false
  ) -> Int {
    let shared = usesReserve ? total : total - total * reservePercent / 100
    return min(bound, FairShare.most(of: shared, usedByOthers: used - own, others: principals - 1))
  }
}
