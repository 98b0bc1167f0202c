package import IdentityCore
import IdentityStore
import Synchronization

/// A request that may change the registry, on its way to the writer. It goes from queue to queue, so it is one reference.
final class Job: Sendable {
  /// What is to be done.
  enum Work: Sendable {
    case registry(RegistryCommand)
    case store(StoreCommand)
    /// Bring a backup into force that was handed in.
    case restore(BackupUpload, dryRun: Bool, adoptsDevice: Bool)
  }

  let connection: ConnectionToken
  let work: Work
  /// The place of its verb.
  let verb: Int
  /// When it was sent, in microseconds of the monotonic clock.
  let started: UInt64
  let peer: Peer
  /// Whom it is charged to.
  let principal: Principal
  /// Others are there, who may want something meanwhile.
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
}

/// What the loop tells the writer.
enum WriterMessage: Sendable {
  case job(Job)
  /// Compare the manifests in these folders, most important first, with the installed apps.
  case survey([String])
  /// Ask whether users are subordinate to this one.
  case rangeOwner(UInt32)
  /// These bounds hold from now on.
  case limits(Limits)
  /// These apps were used. Those that were not for so many days are uninstalled; nil for none.
  case used(Set<Text>, forgetUnusedDays: Int?)
  /// To be answered in the next report.
  case heartbeat(UInt64)
  /// Give back what only the start needed.
  case release
  /// Finish what came before, close the store, and end.
  case stop
}

/// What the writer tells the loop, once a batch is on disk or refused.
struct WriterReport: Sendable {
  /// The answer to one job.
  final class Outcome: Sendable {
    let connection: ConnectionToken
    let principal: Principal
    /// See ``Job``.
    let verb: Int
    /// See ``Job``.
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

    /// The same job, refused. An answer without changes may rest on a change of the same batch, so it is refused too.
    func refused(_ refusal: Refusal) -> Outcome {
      if case .success = result { Outcome(self, .failure(refusal)) } else { self }
    }
  }

  /// A reply, and the secret of the item in it.
  struct Answer: Sendable {
    let reply: Reply
    var secret: SealedSecret?
    /// Bytes that go out in rows before the reply.
    var backup: [UInt8]?
  }

  /// What came of a look at the manifests.
  struct Survey: Sendable {
    /// Who is which app now.
    let claims: AppClaims
    /// What is wrong, each with its file.
    let faults: [String]
  }

  /// A transaction that was tried.
  struct Commit: Sendable {
    /// How many changes it had.
    let changes: Int
    /// How long it took, in microseconds.
    let microseconds: UInt64
    /// Whether they are on disk.
    let isDone: Bool
  }

  /// Durable, in order, to be applied to the committed registry.
  var changes: [RecordedChange] = []
  /// In the order of the jobs.
  var outcomes: [Outcome] = []
  /// What has to be logged.
  var notices: [WriterNotice] = []
  /// Takes the place of the committed registry, after the store was written anew.
  var registry: Registry?
  /// What secrets are read with from now on, after the store was opened anew.
  var reopened: Reopened?
  /// The master key comes from there now; nil where that has not changed.
  var keySource: KeySource?
  /// What the store can do now; nil where that has not changed.
  var condition: StoreCondition?
  /// The manifests were looked at.
  var survey: Survey?
  /// Which users are subordinate to which; nil where nobody looked.
  var subordinates: SubordinateUsers?
  /// Whether the start is done, and questions may be answered from the committed registry; nil where nothing changed.
  var isSettled: Bool?
  /// The transactions there were, in order.
  var commits: [Commit] = []
  /// The size of the store now, in bytes; nil where nobody looked.
  var storeSize: Int64?
  /// The last heartbeat that was received.
  var heartbeat: UInt64?
  /// The store is closed, and the thread ends.
  var hasStopped = false
}

/// The loop's own way to the secrets; nil where it has to ask the writer for each.
struct Reopened: Sendable {
  let reader: ItemReader?
  let keySource: KeySource?
}

/// Something that the writer met and the loop logs.
enum WriterNotice: Equatable, Sendable {
  case store(StoreNotice)
  /// A device identifier is random, because there is no usable machine-id.
  case noMachineIdentifier(String)
  /// The system does not say which it is, and why.
  case systemUnknown(String)
  /// The secret of an item is not what was stored, or cannot be read.
  case secretFault(Item, Refusal)
  /// The data key is wrapped in another master key.
  case keyRotated(KeySource)
  /// So many apps were uninstalled, because they were not used for so many days.
  case unusedForgotten(Int, days: Int)
  /// The store could not be closed as it should; everything acknowledged is on disk.
  case closing(String)
}

/// Where the writer gets what the rules must not read by themselves.
package struct WriterSources: Sendable {
  /// The identifier that the machine-id gives, or why there is none.
  package enum Machine: Equatable, Sendable {
    case known(UUID)
    case unknown(String)
  }

  /// Which system runs, or why that is not known.
  package enum System: Equatable, Sendable {
    case known(Release)
    case unknown(String)
  }

  /// Users by name: those that are known, and what is wrong with others.
  package typealias UserIDs = (known: [Text: UInt32], faults: [Text: String])

  /// Derives the device's own identifier from the machine-id.
  package let machine: @Sendable () -> Machine
  /// Reads the manifests in these folders, most important first.
  package let manifests: @Sendable ([String]) -> ManifestSurvey
  /// Looks users up.
  package let userIDs: @Sendable (Set<Text>) -> UserIDs
  /// Files that are read with each look at the manifests' folders.
  package let files: [String]
  /// Reads which users are subordinate to which, and what is wrong with that; nil where it cannot be read. The users are
  /// those to ask about where a source has to be asked about each.
  package let subordinates: @Sendable (Set<UInt32>) -> (users: SubordinateUsers?, faults: [String])
  /// Reads which system runs.
  package let system: @Sendable () -> System

  /// Names the sources.
  package init(
    machine: @escaping @Sendable () -> Machine, manifests: @escaping @Sendable ([String]) -> ManifestSurvey,
    userIDs: @escaping @Sendable (Set<Text>) -> UserIDs, files: [String] = [],
    subordinates: @escaping @Sendable (Set<UInt32>) -> (users: SubordinateUsers?, faults: [String]),
    system: @escaping @Sendable () -> System
  ) {
    self.machine = machine
    self.manifests = manifests
    self.userIDs = userIDs
    self.files = files
    self.subordinates = subordinates
    self.system = system
  }
}

/// What a start has to know to compare the machine with the one before.
struct StartFacts: Sendable {
  let fingerprint: MachineFingerprint
  let isSealedHere: Bool
  let onMachineChange: MachinePolicy
  let onHardwareChange: MachinePolicy
  let limits: Limits
}

/// Whether the writer is inside a call to the disk: a slow disk is not a hung daemon, and a restart would not mend it.
final class WriterActivity: Sendable {
  private let inStorage = Atomic<Bool>(false)

  func enterStorage() { inStorage.store(true, ordering: .relaxed) }
  func leaveStorage() { inStorage.store(false, ordering: .relaxed) }
  var isInStorage: Bool { inStorage.load(ordering: .relaxed) }
}
