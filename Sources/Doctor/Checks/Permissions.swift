import Glibc
import IdentityClient
import LinuxSystem

/// The owners and modes of the daemon's state, socket and configuration.
struct PermissionFacts: Sendable {
  /// An examined file or folder.
  struct Place: Sendable {
    let path: String
    let status: PathStatus
  }

  let isSystem: Bool
  /// The path of the state directory; nil if it is unknown.
  var stateDirectory: String?
  /// The state directory; nil if it is unknown or missing.
  var state: Place?
  /// The daemon's files in the state directory; nil if this user may not list them.
  var files: [Place]?
  /// The files in the state directory that are none of the daemon's.
  var foreign = ForeignFiles()
  /// The required owner of the state: the user `identityd`, or else the owner of the state directory.
  var owner: UInt32?
  /// The socket and its folder.
  var socket: Place?
  var socketFolder: Place?
  /// The folders and files of the configuration.
  var configuration: [Place] = []
  /// The remedies that follow a change of the state directory.
  var resume: [Remedy] = []
}

extension PermissionFacts {
  private static let configurationFolder = "/etc/identityd"

  /// Gathers the facts.
  init(_ examination: Examination) {
    isSystem = examination.isSystem
    resume = examination.resume(examination.restart)
    let path = examination.socketPath
    socket = Self.place(path)
    socketFolder = Self.place(Folder.path(around: path) + ".").map {
      Place(path: String($0.path.dropLast(2)), status: $0.status)
    }
    // The check of the socket names such a folder, and a remedy for it.
    if let folder = socketFolder?.path, examination.contact == .untrusted(.openFolder(path: folder)) {
      socketFolder = nil
    }
    configuration =
      [Self.configurationFolder, "\(Self.configurationFolder)/identityd.conf"].compactMap(Self.place)
      + Self.places(in: "\(Self.configurationFolder)/identityd.conf.d")
    stateDirectory = examination.stateDirectory
    guard let folder = stateDirectory, let place = Self.place(folder, followsLink: false) else { return }
    state = place
    owner = (isSystem ? (try? Accounts.userID(named: "identityd")) ?? nil : nil) ?? place.status.owner
    guard let names = (try? ConfigurationAccess.names(in: folder)) ?? nil else { return }
    files = names.filter(ForeignFiles.isOwn).compactMap { Self.place("\(folder)/\($0)", followsLink: false) }
    foreign = ForeignFiles(in: folder)
  }

  private static func place(_ path: String, followsLink: Bool) -> Place? {
    ((try? PathStatus.of(path, followsLink: followsLink)) ?? nil).map { Place(path: path, status: $0) }
  }

  private static func place(_ path: String) -> Place? { place(path, followsLink: true) }

  private static func places(in folder: String) -> [Place] {
    let names = (try? ConfigurationAccess.names(in: folder)) ?? nil
    return [folder].compactMap(place) + (names ?? []).compactMap { place("\(folder)/\($0)") }
  }

  /// The judgement of the facts.
  var finding: Finding {
    var found: [Finding.Fault] = []
    if let state { found += stateFaults(state) }
    for file in files ?? [] { found += fileFaults(file) }
    if let fault = foreignFault { found.append(fault) }
    for place in configuration where isSystem && place.status.owner != 0 {
      found.append(
        .failure(
          "\(place.path) belongs to uid \(place.status.owner), who can change it", .root("chown", "root:", place.path)))
    }
    // The sticky bit lets only the owner of a file, or of the folder, replace the file.
    for place in configuration + [socketFolder].compactMap({ $0 }) where place.status.mode & 0o1000 == 0 {
      if let fault = writableFault(place.path, place.status) { found.append(fault) }
    }
    return Finding(
      found, skipped: reason,
      facts: facts(
        ("state", state?.path), ("owner", state.map { "\($0.status.owner)" }),
        ("mode", state.map { octal($0.status.mode) }), ("files", files.map { "\($0.count)" }),
        ("socket-mode", socket.map { octal($0.status.mode) })))
  }

  private var reason: String? {
    guard let stateDirectory else { return Examination.untold("the state directory") }
    guard state != nil else { return "\(stateDirectory) does not exist, or cannot be examined" }
    return files == nil ? "only root and the daemon can read the state directory" : nil
  }

  private func stateFaults(_ state: Place) -> [Finding.Fault] {
    guard state.status.kind == .folder else {
      return [.failure("\(state.path) is not a directory, or is a symbolic link", .anybody("ls", "-ld", state.path))]
    }
    return rightFaults(state, "0700", others: 0o077, own: 0o700)
  }

  private func fileFaults(_ file: Place) -> [Finding.Fault] {
    guard file.status.kind == .regular else {
      return [.failure("\(file.path) is not a regular file", .command(asRoot: isSystem, ["rm", "-r", file.path]))]
    }
    return rightFaults(file, "0600", others: 0o177, own: 0o600)
  }

  /// The warning of files that the daemon neither reads nor removes.
  private var foreignFault: Finding.Fault? {
    guard let names = foreign.text, let stateDirectory else { return nil }
    return .warning(
      "\(stateDirectory) has files that are not identityd's: \(names); move them elsewhere, for example into the home of "
        + "their owner", .command(asRoot: isSystem, ["ls", "-l", stateDirectory]))
  }

  /// Returns the faults of owner and mode.
  ///
  /// - Parameters:
  ///   - mode: The mode that the remedy sets, in octal.
  ///   - others: The permission bits that must not be set.
  ///   - own: The permission bits that must be set.
  private func rightFaults(_ place: Place, _ mode: String, others: UInt32, own: UInt32) -> [Finding.Fault] {
    var found: [Finding.Fault] = []
    if let owner, place.status.owner != owner {
      let name = isSystem ? "identityd:identityd" : "\(owner)"
      found.append(
        .failure(
          "\(place.path) belongs to uid \(place.status.owner), not to uid \(owner)", .root("chown", name, place.path)
        ).causing(.serviceFails, .storeFails))
    }
    let cause = "\(place.path) has mode \(octal(place.status.mode)), not \(mode)"
    let change = Remedy.command(asRoot: isSystem, ["chmod", mode, place.path])
    if place.status.mode & own != own {
      let fault = Finding.Fault.failure("\(cause): the daemon cannot use it", mend: [change] + resume)
      found.append(
        place.path.hasSuffix("/master.key")
          ? fault.causing(.itemsUnavailable) : fault.causing(.serviceFails, .storeFails, .unreachable))
    } else if place.status.mode & others != 0 {
      found.append(.failure(cause, change))
    }
    return found
  }
}
