import Glibc
import LinuxSystem

/// The manifests and their folders.
struct ManifestFacts: Sendable {
  /// An examined file or folder, with its owner and mode.
  struct Place: Sendable {
    let path: String
    /// The status; nil if the file or folder is missing or cannot be examined.
    let status: PathStatus?
  }

  /// The rows `manifest-fault` of `status`; nil if the daemon was not reached.
  var faults: [String]?
  /// The row `manifest-faults` of `status`, which every user gets; nil if there are no faults.
  var faultCount: String?
  /// The command that shows the individual faults.
  var ask = Remedy.root("identityctl", "check")
  /// The command that makes the daemon read the manifests again.
  var reload = Remedy.root("systemctl", "reload", UnitStates.service)
  /// The examined folders, and the manifests in them.
  var places: [Place] = []
  /// Manifests that name a service without a user, and whose service runs as several users. Each entry also names the
  /// service and its users.
  var shared: [(path: String, unit: String, users: [UInt32])] = []
  /// Whether this is the system's daemon, whose manifests must belong to root.
  let isSystem: Bool
}

extension ManifestFacts {
  /// The folders of administrators and packages, for a daemon that reports no folders.
  private static let usualFolders = ["/etc/identityd/apps.d", "/usr/lib/identityd/apps.d"]
  /// The maximum number of files examined in a folder.
  private static let most = 16_384

  /// Gathers the facts.
  init(_ examination: Examination) {
    isSystem = examination.isSystem
    reload = examination.reload
    if !isSystem { ask = .root("identityctl", "--socket=\(examination.socketPath)", "check") }
    faults = examination.answers?.all("manifest-fault")
    faultCount = examination.answers?["manifest-faults"]
    let said = examination.answers?.all("manifest-folder") ?? []
    var units: [(path: String, unit: String)] = []
    for folder in said.isEmpty ? Self.usualFolders : said {
      places.append(Place(path: folder, status: (try? PathStatus.of(folder)) ?? nil))
      let names = (try? ConfigurationAccess.names(in: folder)) ?? nil
      for name in (names ?? []).prefix(Self.most) where name.hasSuffix(".app") {
        let path = "\(folder)/\(name)"
        places.append(Place(path: path, status: (try? PathStatus.of(path)) ?? nil))
        if let unit = Self.unitAlone(in: path) { units.append((path, unit)) }
      }
    }
    let users = UnitUsers.running(in: Set(units.map(\.unit)))
    shared = units.compactMap { path, unit in
      users[unit].flatMap { $0.count > 1 ? (path: path, unit: unit, users: $0) : nil }
    }
  }

  /// Returns the service that a manifest names, if the manifest names no user.
  private static func unitAlone(in path: String) -> String? {
    guard case .bytes(let bytes)? = try? ConfigurationAccess.read(path: path, limit: 65_536) else { return nil }
    let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
    func value(of name: String) -> Substring? {
      lines.last { $0.hasPrefix("\(name)=") }?.dropFirst(name.utf8.count + 1)
    }
    guard value(of: "User") == nil, let unit = value(of: "Unit"), !unit.isEmpty else { return nil }
    return String(unit)
  }

  /// The judgement of the facts.
  var finding: Finding {
    let folders = places.filter { $0.status?.kind == .folder }.map(\.path)
    let found =
      (faults ?? []).map(fault) + [untoldFault].compactMap { $0 } + places.flatMap(rightsFaults)
      + shared.map(sharingFault)
    return Finding(
      found, skipped: faults == nil ? Examination.unreached : nil,
      facts: facts(
        ("faults", faults.map { faultCount ?? "\($0.count)" })) + [Finding.Fact("folders", list: folders)])
  }

  /// The fault for faults of manifests that the daemon counts but does not describe to this user.
  private var untoldFault: Finding.Fault? {
    guard let faults, faults.isEmpty, let faultCount else { return nil }
    let count = faultCount == "1" ? "1 fault is" : "\(faultCount) faults are"
    return .failure(Examination.untold("\(count) in the manifests; the text"), ask)
  }

  private func fault(_ text: String) -> Finding.Fault {
    let files = Self.files(in: text)
    if !files.isEmpty {
      let edit = Remedy.edit(asRoot: true, files)
      // An unknown setting: the rest of the file is in force.
      return text.hasSuffix("; it is ignored") ? .warning(text, edit) : .failure(text, edit)
    }
    // A fault of a folder begins with its path. Any other text names no path, and must not become part of a command.
    if let folder = places.map(\.path).first(where: { text.hasPrefix("\($0): ") }) {
      return text.contains(SystemError.text(of: EACCES))
        ? .failure(text, .root("chmod", "u=rwx,go=rx", folder)) : .failure(text, .root("ls", "-ld", folder))
    }
    return Finding.Fault.failure(text, reload).being(.manifestsIgnored)
  }

  /// Returns the warning for a manifest that leaves open which of several users of its service is the app.
  private func sharingFault(_ path: String, _ unit: String, _ users: [UInt32]) -> Finding.Fault {
    let numbers = users.map { "\($0)" }.joined(separator: ", ")
    return .warning(
      "\(path) names Unit=\(unit) without User=, but \(unit) runs as several users (\(numbers)): the app is root and "
        + "all system users of the unit; name the intended users with User=", .edit(asRoot: true, [path]))
  }

  /// Returns the files that a fault names as `PATH: …`, `PATH:LINE: …` or `PATH and PATH both claim …`.
  static func files(in text: String) -> [String] {
    if let both = front(of: text, before: " both claim "), let first = front(of: both, before: ".app and /") {
      return ["\(first).app", String(both.dropFirst(first.count + ".app and ".count))]
    }
    if let manifest = file(in: text, endingWith: ".app") { return [manifest] }
    return subordinateFiles.filter { text.hasPrefix("\($0):") }
  }

  /// The files with the ranges of subordinate users (subuid(5)), whose faults the daemon reports with those of manifests.
  private static let subordinateFiles = ["/etc/subuid"]

  /// Returns the faults of owner and mode. A user who can write a manifest can impersonate any app.
  private func rightsFaults(_ place: Place) -> [Finding.Fault] {
    guard let status = place.status, status.kind == .folder || status.kind == .regular else { return [] }
    var found: [Finding.Fault] = []
    if let fault = writableFault(place.path, status) { found.append(fault) }
    if isSystem, status.owner != 0 {
      found.append(
        .failure("\(place.path) belongs to uid \(status.owner), who can change it", .root("chown", "root:", place.path))
      )
    }
    let wanted: UInt32 = status.kind == .folder ? 0o005 : 0o004
    if isSystem, status.mode & wanted != wanted {
      found.append(
        .failure(
          "\(place.path) has mode \(octal(status.mode)): the daemon cannot read it",
          .root("chmod", status.kind == .folder ? "o+rx" : "o+r", place.path)))
    }
    return found
  }
}

/// Returns the fault of a path that users other than its owner can write; nil if there is none.
func writableFault(_ path: String, _ status: PathStatus) -> Finding.Fault? {
  let isOthers = status.mode & 0o002 != 0
  // Members of a group other than root's were not chosen for this access.
  guard isOthers || status.mode & 0o020 != 0 && status.group != 0 else { return nil }
  return .failure(
    "\(path) has mode \(octal(status.mode)): \(isOthers ? "everybody" : "its group") can change it",
    .root("chmod", "go-w", path))
}
