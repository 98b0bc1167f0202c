import Glibc
import IdentityWire
import LinuxSystem

/// The identity in the files of a system on which no daemon runs: an image, or this system after a stop.
///
/// The daemon's own `seal` keeps the store until its next start. Here nothing is left to read, and a damaged store is no
/// obstacle.
struct StoppedSystem: ~Copyable {
  private let root: SystemRoot
  /// The daemon's state directory, if any.
  private let state: FilesToDelete?
  /// The folder of encrypted credentials, if any.
  private let credentials: FilesToDelete?

  private static let stateFolder = "var/lib/identityd"
  private static let credentialFolder = "etc/credstore.encrypted"
  private static let lockName = "lock"
  /// See `Opening.markName` of the daemon.
  private static let markName = "sealed-here"
  /// See `ProvisionFile` of the daemon. Without it, the same credentials would bring the identity back.
  private static let provisionName = "provisioned"
  /// The beginnings of the names of keys, and of the files that identityd-setup-key(8) keeps beside its own.
  private static let keys = ["store.key", "master.key"]
  /// An invitation has the keys of an account, and would let the next owner of the system join it.
  private static let credentialNames = ["identityd.key", "identity-fleet.invitation"]

  /// Looks at the files below a root folder, and locks the state directory.
  ///
  /// - Throws: a ``Program/Ending`` if a daemon runs there.
  init(below given: String) throws {
    let root = try SystemRoot(given)
    let state = try FilesToDelete(Self.stateFolder, below: root) {
      ![Self.lockName, Self.markName, Self.provisionName].contains($0)
    }
    let credentials = try FilesToDelete(Self.credentialFolder, below: root) { Self.isNamed($0, Self.credentialNames) }
    try state?.lock(Self.lockName, creating: false)
    self.root = root
    self.state = state
    self.credentials = credentials
  }

  private static func isNamed(_ name: String, _ beginnings: [String]) -> Bool {
    beginnings.contains { name == $0 || name.hasPrefix("\($0).") }
  }

  /// The paths of the files to delete.
  var paths: [String] { (state?.paths ?? []) + (credentials?.paths ?? []) }

  /// Deletes the files, and syncs that to disk. An interruption leaves a store that no daemon takes into use, and a
  /// repetition deletes the rest.
  consuming func seal() throws {
    if let state, !state.names.isEmpty {
      try state.lock(Self.lockName, creating: true)
      try mark(in: state)
    }
    try credentials?.delete()
    // First the keys, without which the rest is of no use.
    try state?.delete { Self.isNamed($0, Self.keys) }
    try state?.delete()
    try state?.removeLock(Self.lockName)
  }

  /// Records the present machine-id, from which the next store must derive nothing: it would be the former identifier.
  private borrowing func mark(in state: FilesToDelete) throws {
    let digits = Set("0123456789abcdef".utf8)
    guard let machine = try root.read("etc/machine-id", limit: 4_096)?.prefix(32), machine.count == 32,
      machine.allSatisfy(digits.contains)
    else { return }
    try state.folder.replace(Self.markName, with: Array(machine), mode: 0o600, isDurable: false)
    try state.folder.giveToOwner(Self.markName)
    try state.folder.synchronize()
  }
}

/// Files in one folder.
private final class FilesToDelete {
  let folder: Folder
  private(set) var names: [String]
  /// Held until the files are deleted, so that no daemon starts meanwhile.
  private var lock: FileLock?

  /// Finds files, and leaves out folders, such as the lost+found of a file system. Nil if there is no folder.
  init?(_ path: String, below root: borrowing SystemRoot, _ isMeant: (String) -> Bool) throws {
    guard let folder = try root.folder(path) else { return nil }
    names = try folder.names().filter { try isMeant($0) && folder.status(of: $0)?.isFolder == false }
    self.folder = folder
  }

  var paths: [String] { names.map { "\(folder.path)/\($0)" } }

  /// Deletes the files with some names, and syncs that to disk.
  func delete(_ isMeant: (String) -> Bool = { _ in true }) throws {
    for name in names where isMeant(name) { try folder.remove(name) }
    names.removeAll(where: isMeant)
    try folder.synchronize()
  }

  /// Locks the folder, as a daemon does, unless this process holds the lock already.
  ///
  /// - Parameter creating: whether to create a missing file. Without the file, no daemon holds the lock.
  /// - Throws: a ``Program/Ending`` if a daemon holds the lock.
  func lock(_ name: String, creating: Bool) throws {
    guard try lock == nil && (creating || folder.status(of: name) != nil) else { return }
    let file = try folder.open(name, flags: O_RDWR | O_CREAT, mode: 0o600)
    lock = try FileLock(of: file, name: "\(folder.path)/\(name)")
    guard lock == nil else { return }
    throw Program.Ending(
      status: Program.ExitStatus.fileFailed,
      text:
        "\(folder.path) is in use by a running daemon; stop it, here with 'systemctl stop identityd.socket identityd.service', and repeat this command"
    )
  }

  /// Removes the file of the lock, if this process holds the lock.
  func removeLock(_ name: String) throws {
    guard lock != nil else { return }
    try folder.remove(name)
    try folder.synchronize()
  }
}

// `--root=DIR seal`: needs no daemon.
extension Program {
  /// Deletes the identity of a system on which no daemon runs, or shows the files for a dry run.
  static func sealStopped(_ line: CommandLine) throws -> Int32 {
    for option in ["socket", "user", "json"] where line.options[option] != nil {
      throw CommandLine.UsageError("'--root' cannot be combined with '--\(option)'")
    }
    let further = line.words.dropFirst().map { $0.lowercased() }
    let isDry = further == ["dry-run=yes"]
    guard isDry || further.isEmpty else {
      throw CommandLine.UsageError("'--root=DIR seal' takes no further word")
    }
    // An empty variable of a script must not mean this system.
    guard let root = line.options["root"], !root.isEmpty else {
      throw CommandLine.UsageError("--root cannot be ''; allowed: a directory, and / for this system")
    }
    let consent = try Consent(to: line)
    let system = try StoppedSystem(below: root)
    let files = system.paths.map { "\(WordEncoder.visible($0))\n" }.joined()
    if isDry { return line.options["quiet"] != nil || show(files, line) ? ExitStatus.success : ExitStatus.outputFailed }
    try consent?.ask(files)
    try system.seal()
    return ExitStatus.success
  }
}
