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
    for folder in said.isEmpty ? Self.usualFolders : said {
      places.append(Place(path: folder, status: (try? PathStatus.of(folder)) ?? nil))
      let names = (try? ConfigurationAccess.names(in: folder)) ?? nil
      for name in (names ?? []).prefix(Self.most) where name.hasSuffix(".app") {
        let path = "\(folder)/\(name)"
        places.append(Place(path: path, status: (try? PathStatus.of(path)) ?? nil))
      }
    }
  }

  /// What that means.
  var finding: Finding {
    let folders = places.filter { $0.status?.kind == .folder }.map(\.path)
    let found = (faults ?? []).map(fault) + [untoldFault].compactMap { $0 } + places.flatMap(rightsFaults)
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
