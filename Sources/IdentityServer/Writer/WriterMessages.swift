package import IdentityCore
import IdentityStore
import IdentityWire
import Synchronization

/// A request that may change the registry, on its way to the writer.
///
/// A class, so that passing it from queue to queue copies one reference.
final class Job: Sendable {
  /// The work to do.
  enum Work: Sendable {
    case registry(RegistryCommand)
    case store(StoreCommand)
    case long(LongTask)
  }

  let connection: ConnectionToken
  let work: Work
  /// The index of the verb in ``VerbTable/verbs``.
  let verb: Int
  /// The time at which the job was sent, in microseconds of the monotonic clock.
  let started: UInt64
  let peer: Peer
  /// The principal that is charged.
  let principal: Principal
  /// The party to which changes and log entries of the job are attributed.
  var originator: Originator { Originator(peer, principal) }
  /// Whether other principals are connected, which may send jobs meanwhile.
  let isShared: Bool

  init(
    connection: ConnectionToken, work: Work, verb: Int, started: UInt64, peer: Peer, principal: Principal,
    isShared: Bool
  ) {
    self.connection = connection
    self.work = work
    self.verb = verb
    self.started = started
    self.peer = peer
    self.principal = principal
    self.isShared = isShared
  }

  /// The app whose manifest an admin says is gone; nil for any other job. A survey waits for the disk and for name
  /// services, so only an admin can ask for one.
  var removedApp: Text? {
    if peer.isAdmin, case .registry(let command) = work { command.removedApp } else { nil }
  }

  convenience init(_ other: Job, goingOnWith command: RegistryCommand) {
    self.init(
      connection: other.connection, work: .registry(command), verb: other.verb, started: other.started,
      peer: other.peer, principal: other.principal, isShared: other.isShared)
  }
}

/// A message from the loop to the writer.
enum WriterMessage: Sendable {
  case job(Job)
  /// Compares the manifests in these folders, most important first, with the installed apps.
  case survey([String])
  /// Looks up the subordinate users of this user.
  case rangeOwner(UInt32)
  /// Applies these bounds from now on.
  case limits(Limits)
  /// Applies these settings about proofs from now on.
  case proofs(ProofSettings)
  /// Records the use of these apps, and uninstalls the unused and suspended apps that are due.
  case used(Set<Text>, ForgetPolicy)
  /// Records that a client has read a backup to its end that was made at this time.
  case backupTaken(Timestamp)
  /// Checks whether the files of the store are in their places, and whether a read-only file system is writable now.
  case examine
  /// A heartbeat of the watchdog, to be returned in the next report.
  case heartbeat(UInt64)
  /// Releases memory that only the start needed.
  case release
  /// Finishes earlier messages, closes the store, and ends the thread.
  case stop
}

/// A report from the writer to the loop, sent once a batch is on disk or refused.
struct WriterReport: Sendable {
  /// The outcome of one job.
  final class Outcome: Sendable {
    let connection: ConnectionToken
    let principal: Principal
    /// See ``Job/verb``.
    let verb: Int
    /// See ``Job/started``.
    let started: UInt64
    let result: Result<Answer, Refusal>

    init(_ job: Job, _ result: Result<Answer, Refusal>) {
      connection = job.connection
      principal = job.principal
      verb = job.verb
      started = job.started
      self.result = result
    }

    private init(_ other: Outcome, _ result: Result<Answer, Refusal>) {
      connection = other.connection
      principal = other.principal
      verb = other.verb
      started = other.started
      self.result = result
    }

    /// Returns the outcome with a refusal in place of a success.
    ///
    /// An answer without changes is refused too, because it may depend on a change of the same batch.
    func refused(_ refusal: Refusal) -> Outcome {
      if case .success = result { Outcome(self, .failure(refusal)) } else { self }
    }
  }

  /// A reply, with the secrets of its items.
  struct Answer: Sendable {
    let reply: Reply
    /// The rest of the request. The answer is not sent if there is one.
    var next: RegistryCommand?
    /// The secrets in the order of ``Reply/secrets``.
    var secrets: [SealedSecret] = []
    /// A backup, which is sent in rows before the reply.
    var backup: OutgoingBackup?
  }

  /// The result of a survey of the manifests.
  struct Survey: Sendable {
    /// The apps that manifests assign to peers now.
    let claims: AppClaims
    /// The faults, each with its file.
    let faults: [String]
  }

  /// A transaction that succeeded or failed.
  struct Commit: Sendable {
    /// The number of changes.
    let changes: Int
    /// The duration, in microseconds.
    let microseconds: UInt64
    /// Whether the changes are on disk.
    let isDone: Bool
  }

  /// The facts about the store that `status` and `stats` show.
  struct StoreFacts: Sendable {
    /// The time at which the recovery key was set; nil if there is none.
    let recoveryKeyTime: Timestamp?
    /// The size of the store in bytes, when it was last measured.
    let size: Int64
    /// Whether only a new start of the daemon can make the store writable, and would do so.
    let isStartDue: Bool
  }

  /// The changes and the outcomes.
  var results = Results()
  /// The notices to log.
  var notices: [WriterNotice] = []
  /// The replacement of the committed registry after the store was rewritten; nil otherwise.
  var registry: Registry?
  /// A registry with the items that the start had left out, before the changes of this report; nil otherwise.
  var items: Registry?
  /// The loop's access to secrets from now on; nil if unchanged.
  var reopened: Reopened?
  /// The resumption that sessions depend on from now on; nil if unchanged.
  var resumption: Resumption?
  /// The condition of the store; nil if unchanged.
  var condition: StoreCondition?
  /// The store after these changes; nil in a report that only has notices.
  var store: StoreFacts?
  /// The result of a survey; nil if there was none.
  var survey: Survey?
  /// The ranges of subordinate users; nil if they were not read.
  var subordinates: SubordinateUsers?
  /// Whether startup has finished, so that the loop may answer from the committed registry; nil if unchanged.
  var isStarted: Bool?
  /// The transactions since the last report, in order.
  var commits: [Commit] = []
  /// The last heartbeat received.
  var heartbeat: UInt64?
  /// Whether the store is closed and the thread ends.
  var hasStopped = false

  /// Returns the report in pieces, of which no reader sees a part of a request. The first one has everything that is
  /// neither a change nor an outcome, because the writer did that first.
  ///
  /// - Parameter length: the number of changes, or of outcomes, after which a piece ends.
  func pieces(of length: Int) -> [WriterReport] {
    var pieces = results.pieces(of: length).map { WriterReport(results: $0) }
    guard let first = pieces.first else { return [self] }
    pieces[0] = self
    pieces[0].results = first.results
    pieces[0].hasStopped = false
    pieces[pieces.count - 1].hasStopped = hasStopped
    return pieces
  }
}

/// The loop's access to secrets, and the source of the master key. Without a reader, the loop has to ask the writer for
/// each secret.
struct Reopened: Sendable {
  let reader: ItemReader?
  let keySource: KeySource?
  let proofKeyCipher: ProofKeyCipher?
}

/// A notice from the writer that the loop logs.
enum WriterNotice: Equatable, Sendable {
  case store(StoreNotice)
  /// A device identifier was drawn at random, because there is no usable machine-id for the given reason.
  case noMachineIdentifier(String, by: Originator)
  /// The version of the system is unknown for the given reason.
  case systemUnknown(String)
  /// The secret of an item is not as it was stored, or cannot be read.
  case secretFault(Item, Refusal, by: Originator)
  /// The data key is wrapped in another master key.
  case keyRotated(KeySource)
  /// The data key is wrapped in a new recovery key, too.
  case recoveryKeySet
  /// The recovery key opened the data key, which is wrapped in the present master key.
  case keyRecovered(KeySource)
  /// The machine was given an identity.
  case provisioned
  /// The machine could not be given its identity, for the given reason.
  case provisionFailed(String)
  /// This number of apps was uninstalled, because they were unused or suspended for too long.
  case unusedForgotten(Int)
  /// The store could not be closed properly for the given reason. Every acknowledged change is on disk.
  case closing(String)
}

/// The writer's sources of facts about the system. The rules do no I/O of their own.
package struct WriterSources: Sendable {
  /// The shared device identifier derived from the machine-id, or the reason why there is none.
  package enum Machine: Equatable, Sendable {
    case known(UUID)
    case unknown(String)
  }

  /// The release of the running system, or the reason why it is unknown.
  package enum System: Equatable, Sendable {
    case known(Release)
    case unknown(String)
  }

  /// The user IDs of known users by name, and the faults of the others.
  package typealias UserIDs = (known: [Text: UInt32], faults: [Text: String])

  /// Derives the shared device identifier from the machine-id.
  package let machine: @Sendable () -> Machine
  /// Reads the manifests in these folders, most important first.
  package let manifests: @Sendable ([String]) -> ManifestSurvey
  /// Looks up users by name.
  package let userIDs: @Sendable (Set<Text>) -> UserIDs
  /// The paths of further files that each survey reads.
  package let files: [String]
  /// Reads the ranges of subordinate users, which are nil if they cannot be read, and returns the faults found.
  ///
  /// The argument lists the users to query if a name service knows ranges only by owner.
  package let subordinates: @Sendable (Set<UInt32>) -> (users: SubordinateUsers?, faults: [String])
  /// Reads the release of the running system.
  package let system: @Sendable () -> System
  /// Reads the identity that this machine is given at its first start.
  package let provision: @Sendable () throws -> Provision

  package init(
    machine: @escaping @Sendable () -> Machine, manifests: @escaping @Sendable ([String]) -> ManifestSurvey,
    userIDs: @escaping @Sendable (Set<Text>) -> UserIDs, files: [String] = [],
    subordinates: @escaping @Sendable (Set<UInt32>) -> (users: SubordinateUsers?, faults: [String]),
    system: @escaping @Sendable () -> System, provision: @escaping @Sendable () throws -> Provision = { Provision() }
  ) {
    self.machine = machine
    self.manifests = manifests
    self.userIDs = userIDs
    self.files = files
    self.subordinates = subordinates
    self.system = system
    self.provision = provision
  }
}

/// The progress of startup. A damaged store is served without the record of this machine.
enum Startup {
  /// The store has no record of this machine yet. Requests to the registry are served unless identifiers have to be
  /// renewed first.
  indirect case comparing(StartFacts, isServing: Bool)
  /// The store has the record of this machine.
  case recorded
  /// The report of the system in this boot is on disk too, or cannot be made.
  case reported

  /// Whether requests to the registry are served.
  var isServing: Bool { if case .comparing(_, let isServing) = self { isServing } else { true } }
}

/// The facts with which a start compares the machine with the recorded one.
struct StartFacts: Sendable {
  let fingerprint: MachineFingerprint
  let isSealedHere: Bool
  let onMachineChange: MachinePolicy
  let onHardwareChange: MachinePolicy
  let limits: Limits
}

/// The flag that tells the watchdog whether the writer is in storage I/O.
///
/// A slow disk is not a hung daemon, and a restart would not help.
final class WriterActivity: Sendable {
  private let flag = Atomic<Bool>(false)

  var isInStorage: Bool { flag.load(ordering: .relaxed) }

  /// Runs a closure that may wait for storage.
  func inStorage<Result, Failure>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
    flag.store(true, ordering: .relaxed)
    defer { flag.store(false, ordering: .relaxed) }
    return try body()
  }
}
