/// A row of the table of `status`: everything about a row but its value.
///
/// The answer to `status`, the manual, `identityctl check` and the tests all use the table.
package struct StatusRow: Equatable, Sendable {
  /// The name of the row: words in lower case, joined by hyphens.
  package let name: String
  /// The peers that may see the row.
  package let audience: RowAudience
  /// The meaning of the row, in sentences for the manual.
  package let summary: String

  private init(_ name: String, audience: RowAudience = .monitors, _ summary: String) {
    self.name = name
    self.audience = audience
    self.summary = summary
  }
}

extension StatusRow {
  package static let version = StatusRow("version", audience: .everybody, "The release of the daemon.")
  package static let lineProtocol = StatusRow("protocol", audience: .everybody, "The version of this protocol.")
  package static let process = StatusRow("pid", "The daemon's process.")
  package static let started = StatusRow("started", "When the daemon began.")
  package static let uptime = StatusRow("uptime", "How many seconds the daemon has run.")
  package static let boot = StatusRow("boot", audience: .sharingMonitors, "The kernel's ID of this boot.")
  package static let socket = StatusRow("socket", "The path of the socket that the daemon listens on.")
  package static let store = StatusRow(
    "store", audience: .everybody,
    "'ok', 'no-space', 'read-only', 'read-error' or 'damaged'; identityd(8) says what each means. Changes are possible with 'ok' alone."
  )
  package static let connections = StatusRow("connections", "How many connections there are, this one included.")
  package static let subscribers = StatusRow("subscribers", "How many connections subscribed to events.")
  package static let lastEvent = StatusRow("last-event", "The number of the last event.")
  package static let epoch = StatusRow(
    "epoch",
    "A random word that all event numbers belong to. It changes with the first start, a restore, and where an older copy of the store was accepted."
  )
  package static let keptEvents = StatusRow("kept-events", "How many events are kept.")
  package static let apps = StatusRow("apps", "How many apps are installed.")
  package static let manifests = StatusRow("manifests", "How many apps are installed by a manifest.")
  package static let installations = StatusRow(
    "installations", "How many identifiers of installations are in force.")
  package static let vendors = StatusRow("vendors", "How many identifiers of vendors are in force.")
  package static let devices = StatusRow("devices", "How many devices are listed.")
  package static let deviceOrigin = StatusRow(
    "device-origin",
    "Where the device identifier that apps share came from: 'machine', 'random', 'migrated', 'restored' or, without one, 'none'; 'unknown' where a damaged store does not say."
  )
  package static let items = StatusRow("items", "How many items there are.")
  package static let itemBytes = StatusRow(
    "item-bytes", "How many bytes all items count together in the quotas of their apps.")
  package static let tokens = StatusRow("tokens", "How many push tokens there are.")
  package static let key = StatusRow(
    "key", audience: .everybody,
    "Where the master key of the items is: 'file', in the state directory, or 'credential', handed over by the service manager. With 'unavailable' no item can be used; see identityd(8)."
  )
  package static let fleet = StatusRow("fleet", "For a later release: 'none'.")
  package static let suspect = StatusRow(
    "suspect",
    "Only where the device may be another one and its identifiers were kept: the cause, and since when.")
  package static let keyReason = StatusRow("key-reason", audience: .everybody, "Only with 'key=unavailable': why.")
  package static let sealed = StatusRow("sealed", audience: .everybody, "Only where the store is sealed: 'yes'.")
  package static let storeReason = StatusRow(
    "store-reason", audience: .everybody, "Only where 'store' is not 'ok': why, as the answer to a change has it.")
  package static let unproven = StatusRow(
    "store-unproven",
    "Only with 'store=damaged': the kinds of records that are not all proven. Requests about these are refused, unless a proven record answers them; counts of them are too low."
  )
  package static let storeSource = StatusRow(
    "store-source",
    "Only where the start could not read the store from the disk itself, because its file system keeps what was read: 'cache'. After a failed write the cache can have what the disk does not have."
  )
  package static let manifestFault = StatusRow(
    "manifest-fault", "Something that is wrong with a manifest. A row each, the first 16.")
  package static let manifestFaults = StatusRow(
    "manifest-faults", audience: .everybody, "Only where something is wrong with manifests: how many faults there are.")
  package static let stateDirectory = StatusRow("state-directory", "The folder with all state.")
  package static let manifestFolder = StatusRow(
    "manifest-folder", "A folder that manifests are looked for in. A row each, the most important first.")

  /// All rows, in the order of the answer.
  package static let all = [
    version, lineProtocol, process, started, uptime, boot, socket, store, connections, subscribers, lastEvent,
    epoch, keptEvents, apps, manifests, installations, vendors, devices, deviceOrigin, items, itemBytes, tokens, key,
    fleet, suspect,
    keyReason, sealed, storeReason, unproven, storeSource, manifestFault, manifestFaults, stateDirectory,
    manifestFolder,
  ]
}
