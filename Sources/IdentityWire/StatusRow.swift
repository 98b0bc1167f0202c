/// A row of the table of `status`: everything about a row but its value.
///
/// The answer to `status`, the manual, `identityctl check` and the tests all use the table.
package struct StatusRow: Equatable, Sendable {
  /// The name of the row: words in lower case, joined by hyphens.
  package let name: String
  /// The kind of the value.
  package let kind: Verb.Field.Kind
  /// Whether an answer may have the row any number of times.
  package let repeats: Bool
  /// The peers that may see the row.
  package let audience: RowAudience
  /// The meaning of the row, in sentences for the manual.
  package let summary: String

  private init(
    _ name: String, kind: Verb.Field.Kind = .word, repeats: Bool = false, audience: RowAudience = .monitors,
    _ summary: String
  ) {
    self.name = name
    self.kind = kind
    self.repeats = repeats
    self.audience = audience
    self.summary = summary
  }
}

extension StatusRow {
  package static let version = StatusRow("version", audience: .everybody, "The release of the daemon.")
  package static let lineProtocol = StatusRow(
    "protocol", kind: .number, audience: .everybody, "The version of this protocol.")
  package static let process = StatusRow("pid", kind: .number, "The process ID of the daemon.")
  package static let started = StatusRow("started", kind: .time, "The time when the daemon started.")
  package static let uptime = StatusRow("uptime", kind: .number, "The number of seconds since the daemon started.")
  package static let boot = StatusRow("boot", kind: .uuid, audience: .sharingMonitors, "The kernel's boot ID.")
  package static let socket = StatusRow("socket", "The path of the socket that the daemon listens on.")
  package static let store = StatusRow(
    "store", audience: .everybody,
    "The condition of the store: 'ok', 'checking', 'no-space', 'read-only', 'read-error' or 'damaged', as described in identityd(8). Changes are possible if it is 'ok', and wait while it is 'checking'."
  )
  package static let storeIdentifier = StatusRow(
    "store-id", kind: .uuid, audience: .sharingMonitors,
    "The identifier of the store, which is drawn at the first start and never changes. A backup names its store by a hash of it. Absent if a damaged store does not prove it."
  )
  package static let connections = StatusRow(
    "connections", kind: .number, "The number of connections, including this one.")
  package static let subscribers = StatusRow(
    "subscribers", kind: .number, "The number of connections that are subscribed to events.")
  package static let lastEvent = StatusRow("last-event", kind: .number, "The sequence number of the last event.")
  package static let epoch = StatusRow(
    "epoch",
    "A random word that identifies the numbering of events. It changes at the first start, at a restore, and when an older copy of the store is accepted."
  )
  package static let keptEvents = StatusRow("kept-events", kind: .number, "The number of events that are kept.")
  package static let apps = StatusRow("apps", kind: .number, "The number of installed apps.")
  package static let manifests = StatusRow(
    "manifests", kind: .number, "The number of apps that are installed by a manifest, suspended ones included.")
  package static let suspendedApps = StatusRow(
    "suspended-apps", kind: .number, "Only if apps are suspended: the number of apps whose manifests are missing.")
  package static let installations = StatusRow(
    "installations", kind: .number, "The number of installation identifiers in force.")
  package static let vendors = StatusRow("vendors", kind: .number, "The number of vendor identifiers in force.")
  package static let devices = StatusRow("devices", kind: .number, "The number of listed devices.")
  package static let deviceOrigin = StatusRow(
    "device-origin",
    "The origin of the device identifier that apps share: 'machine', 'random', 'migrated' or 'restored'; 'none' if there is no such identifier, 'unknown' if a damaged store does not prove it."
  )
  package static let items = StatusRow("items", kind: .number, "The number of items.")
  package static let itemBytes = StatusRow(
    "item-bytes", kind: .number, "The number of bytes of all items, as counted in the quotas of their apps.")
  package static let tokens = StatusRow("tokens", kind: .number, "The number of push tokens.")
  package static let masterKey = StatusRow(
    "master-key", audience: .everybody,
    "The source of the items' master key: 'file' in the state directory, or 'credential' from the service manager. If it is 'unavailable', items cannot be used; see identityd(8)."
  )
  package static let recoveryKey = StatusRow(
    "recovery-key", kind: .time, "Only if there is a recovery key: the time when it was set with 'key protect'.")
  package static let lastBackup = StatusRow(
    "last-backup", kind: .time,
    "Only if a client has read a backup to its end: the time when the last such backup was made.")
  package static let fleet = StatusRow(
    "fleet",
    "The state of the fleet's service, as it said with 'fleet said'; 'open' if it has said none, 'none' if no connection has the fleet open."
  )
  package static let fleetWord = StatusRow(
    "fleet-said", repeats: true,
    "Something else that the fleet's service said, as NAME=TEXT. There is one row for each of at most 16 names.")
  package static let suspect = StatusRow(
    "suspect",
    "Only if this may be another machine and the identifiers were kept: the cause, and the time when it was noticed.")
  package static let machineChange = StatusRow(
    "machine-change",
    "Only if the identifiers were renewed on another machine and no admin has acknowledged that: the cause, and the time when it was noticed."
  )
  package static let masterKeyReason = StatusRow(
    "master-key-reason", audience: .everybody, "Only with 'master-key=unavailable': the reason.")
  package static let proofKey = StatusRow(
    "proof-key",
    "Only if there is a proof key, or none could be made: its ID, or 'locked' if it belongs to another machine, or 'unavailable' if it cannot sign."
  )
  package static let proofKeyReason = StatusRow(
    "proof-key-reason", "Only with 'proof-key=unavailable': the reason.")
  package static let sealed = StatusRow(
    "sealed", kind: .boolean, audience: .everybody, "Only if the store is sealed: 'yes'.")
  package static let storeReason = StatusRow(
    "store-reason", audience: .everybody, "Only if 'store' is not 'ok': the reason, as in the error that a change gets."
  )
  package static let unproven = StatusRow(
    "store-unproven",
    "Only with 'store=damaged': the kinds of records of which some are not proven. A request about these kinds is refused unless a proven record answers it, and their counts are too low."
  )
  package static let storeSource = StatusRow(
    "store-source",
    "Only if the start could not read the store from the disk, because the file system does not drop it from the page cache: 'cache'. After a failed write the page cache can hold data that the disk lacks."
  )
  package static let manifestFault = StatusRow(
    "manifest-fault", repeats: true, "A fault in a manifest. There is one row for each of the first 16 faults.")
  package static let manifestFaults = StatusRow(
    "manifest-faults", kind: .number, audience: .everybody, "Only if manifests have faults: the number of faults.")
  package static let configurationReason = StatusRow(
    "configuration-reason",
    "Only if the last reload refused the configuration: the reason, with file and line. The previous configuration is in force, and the next start fails unless the fault is corrected."
  )
  package static let provisionReason = StatusRow(
    "provision-reason",
    "Only if the credentials for the first start could not be applied: the reason. They are tried again at the next start, as long as the store has no identifier, item or account."
  )
  package static let stateDirectory = StatusRow("state-directory", "The path of the state directory.")
  package static let manifestFolder = StatusRow(
    "manifest-folder", repeats: true,
    "A directory that is searched for manifests. There is one row for each directory, in the order of precedence.")

  /// All rows, in the order of the answer.
  package static let all = [
    version, lineProtocol, process, started, uptime, boot, socket, store, storeIdentifier,
    connections, subscribers, lastEvent,
    epoch, keptEvents, apps, manifests, suspendedApps, installations, vendors, devices, deviceOrigin, items, itemBytes,
    tokens, masterKey, recoveryKey, lastBackup, fleet, fleetWord, suspect, machineChange, masterKeyReason, proofKey,
    proofKeyReason, sealed,
    storeReason, unproven, storeSource,
    manifestFault, manifestFaults,
    configurationReason, provisionReason, stateDirectory, manifestFolder,
  ]
}
