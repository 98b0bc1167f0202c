import LinuxSystem

/// The manifests, and the folders they are in.
struct ManifestFacts: Sendable {
  /// What was looked at, with its owner and mode.
  struct Place: Sendable {
    let path: String
    /// nil where it is missing.
    let status: PathStatus?
  }

  /// The rows `manifest-fault` of `status`; nil where the daemon was not reached.
  var faults: [String]?
  /// The row `manifest-faults`, which everybody is told of; nil where nothing is wrong.
  var faultCount: String?
  /// Shows the names of the faults.
  var ask = Remedy.root("identityctl", "check")
  /// The folders that were looked at and are there, and the manifests in them.
  var places: [Place] = []
  /// Manifests that name a service and no user, each with the users that its service runs as, where these are several.
  var shared: [(path: String, unit: String, users: [UInt32])] = []
  /// Whether it is the system's daemon: its manifests are root's.
  let isSystem: Bool
}

extension ManifestFacts {
  /// Where packages and administrators put manifests, where the daemon does not say.
  private static let usualFolders = ["/etc/identityd/apps.d", "/usr/lib/identityd/apps.d"]
  /// The most manifests that are looked at.
  private static let most = 16_384

  /// Looks.
  init(_ examination: Examination) {
    isSystem = examination.isSystem
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

  /// The service that a manifest names, where it names no user.
  private static func unitAlone(in path: String) -> String? {
    guard case .bytes(let bytes)? = try? ConfigurationAccess.read(path: path, limit: 65_536) else { return nil }
    let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
    func value(of name: String) -> Substring? {
      lines.last { $0.hasPrefix("\(name)=") }?.dropFirst(name.utf8.count + 1)
    }
    guard value(of: "User") == nil, let unit = value(of: "Unit"), !unit.isEmpty else { return nil }
    return String(unit)
  }

  /// What that means.
  var finding: Finding {
    let folders = places.filter { $0.status?.kind == .folder }.map(\.path)
    let found =
      (faults ?? []).map(fault) + [untoldFault].compactMap { $0 } + places.flatMap(rightsFaults)
      + shared.map(sharingFault)
    return Finding(
      found, skipped: faults == nil ? Examination.unreached : nil,
      facts: facts(
        ("folders", folders.joined(separator: " ")), ("faults", faults.map { faultCount ?? "\($0.count)" })))
  }

  /// Of faults that the daemon does not name to this user.
  private var untoldFault: Finding.Fault? {
    guard let faults, faults.isEmpty, let faultCount else { return nil }
    let count = faultCount == "1" ? "1 fault is" : "\(faultCount) faults are"
    return .failure(Examination.untold("\(count) in the manifests: which"), ask)
  }

  private func fault(_ text: String) -> Finding.Fault {
    let files = Self.files(in: text)
    if !files.isEmpty { return .failure(text, .edit(asRoot: true, files)) }
    // Of a folder: what is said of it begins with its path.
    let folder = Self.front(of: text, before: ": ") ?? "/etc/identityd/apps.d"
    return .failure(text, .root("chmod", "u=rwx,go=rx", folder))
  }

  /// An app is a unit and a user: which of several users is meant has to be said.
  private func sharingFault(_ path: String, _ unit: String, _ users: [UInt32]) -> Finding.Fault {
    let numbers = users.map { "\($0)" }.joined(separator: ", ")
    return .warning(
      "\(path) names Unit=\(unit) and no User=, and \(unit) runs as several users (\(numbers)): the app is root and system "
        + "users there; with User= it is only those that are meant", .edit(asRoot: true, [path]))
  }

  /// The files that a fault of manifests names: `PATH: …`, `PATH:LINE: …`, or `PATH and PATH both say …`.
  static func files(in text: String) -> [String] {
    if let both = front(of: text, before: " both say "), let first = front(of: both, before: ".app and /") {
      return ["\(first).app", String(both.dropFirst(first.count + ".app and ".count))]
    }
    guard text.hasPrefix("/"), let file = front(of: text, before: ".app:") else { return [] }
    return ["\(file).app"]
  }

  private static func front(of text: String, before mark: String) -> String? {
    var rest = text[...]
    while !rest.isEmpty {
      if rest.hasPrefix(mark) { return String(text[..<rest.startIndex]) }
      rest.removeFirst()
    }
    return nil
  }

  /// Who can write a manifest can be any app.
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
          "\(place.path) has mode \(octal(status.mode)): the daemon may not read it",
          .root("chmod", status.kind == .folder ? "o+rx" : "o+r", place.path)))
    }
    return found
  }
}

/// What is wrong where others than the owner can write something that nobody else should.
func writableFault(_ path: String, _ status: PathStatus) -> Finding.Fault? {
  let isOthers = status.mode & 0o002 != 0
  // A group that is not root's has members whom nobody asked for this.
  guard isOthers || status.mode & 0o020 != 0 && status.group != 0 else { return nil }
  return .failure(
    "\(path) has mode \(octal(status.mode)): \(isOthers ? "everybody" : "its group") can change it",
    .root("chmod", "go-w", path))
}
