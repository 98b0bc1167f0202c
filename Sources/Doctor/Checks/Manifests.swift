import Glibc
import IdentityCore
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
  var ask = ClientAddress.system.remedy("check")
  /// The command that makes the daemon read the manifests again.
  var reload = Remedy.root("systemctl", "reload", UnitStates.service)
  /// The examined folders, and the manifests in them.
  var places: [Place] = []
  /// A manifest that names a service which runs.
  struct Claim: Sendable {
    /// The path of the manifest.
    let path: String
    let unit: String
    /// The users that the manifest names.
    let named: [String]
    /// The users that the service runs as.
    var running: [UInt32] = []
  }

  /// The manifests of services that run.
  var claims: [Claim] = []
  /// The names and IDs of users that matter to the claims.
  var users: [String: UInt32] = [:]
  /// The lowest ID of a regular user.
  var firstRegular: UInt32 = 1_000
  /// The manifests that were installed a moment ago, whose package may still be creating its user.
  var fresh: Set<String> = []
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
    ask = examination.client.remedy("check")
    faults = examination.answers?.all("manifest-fault")
    faultCount = examination.answers?["manifest-faults"]
    let said = examination.answers?.all("manifest-folder") ?? []
    var found: [Claim] = []
    let now = Clock.realtimeMilliseconds / 1_000
    for folder in said.isEmpty ? Self.usualFolders : said {
      places.append(Place(path: folder, status: (try? PathStatus.of(folder)) ?? nil))
      let names = (try? ConfigurationAccess.names(in: folder)) ?? nil
      for name in (names ?? []).prefix(Self.most) where name.hasSuffix(".app") {
        let path = "\(folder)/\(name)"
        let status = (try? PathStatus.of(path)) ?? nil
        places.append(Place(path: path, status: status))
        if let status, (0...Self.secondsOfInstallation).contains(now - status.changed) { fresh.insert(path) }
        if let claim = Self.claim(in: path) { found.append(claim) }
      }
    }
    let running = UnitUsers.running(in: Set(found.map(\.unit)))
    firstRegular = (try? Accounts.firstRegularUser()) ?? firstRegular
    for var claim in found {
      claim.running = running[claim.unit] ?? []
      guard !claim.running.isEmpty else { continue }
      claims.append(claim)
      for name in claim.named { users[name] = (try? Accounts.userID(named: name)) ?? nil }
      for user in claim.running {
        if let name = (try? Accounts.userName(of: user)) ?? nil { users[name] = user }
      }
    }
  }

  /// The time that an installation may take between a manifest and its user.
  private static let secondsOfInstallation: Int64 = 30

  /// Returns the service and the users that a manifest names; nil if it names no service.
  private static func claim(in path: String) -> Claim? {
    guard case .bytes(let bytes)? = try? ConfigurationAccess.read(path: path, limit: 65_536) else { return nil }
    let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
    func values(of name: String) -> [String] {
      lines.filter { $0.hasPrefix("\(name)=") }.map { String($0.dropFirst(name.utf8.count + 1)) }
    }
    guard let unit = values(of: "Unit").last, !unit.isEmpty else { return nil }
    return Claim(
      path: path, unit: unit, named: values(of: "User").flatMap { $0.split(separator: " ").map(String.init) })
  }

  /// The judgement of the facts.
  var finding: Finding {
    let folders = places.filter { $0.status?.kind == .folder }.map(\.path)
    let found =
      (faults ?? []).filter { !isSettling($0) }.map(fault) + [untoldFault].compactMap { $0 }
      + places.flatMap(rightsFaults)
      + claims.compactMap(claimFault)
    let settling =
      (faults ?? []).contains(where: isSettling) ? "a package is being installed; run the check again" : nil
    return Finding(
      found, skipped: faults == nil ? Examination.unreached : settling,
      facts: facts(
        ("faults", faults.map { faultCount ?? "\($0.count)" })) + [Finding.Fact("folders", list: folders)])
  }

  /// The fault for faults of manifests that the daemon counts but does not describe to this user.
  private var untoldFault: Finding.Fault? {
    guard let faults, faults.isEmpty, let faultCount else { return nil }
    let count = faultCount == "1" ? "1 fault is" : "\(faultCount) faults are"
    return .failure(Examination.untold("\(count) in the manifests; the text"), ask)
  }

  /// Whether a fault is that of a package which is being installed: its manifest is there, and its user is not yet.
  private func isSettling(_ text: String) -> Bool {
    Self.namesMissingUser(text) && !fresh.isDisjoint(with: Self.files(in: text))
  }

  private static func namesMissingUser(_ text: String) -> Bool { text.hasSuffix(" does not exist yet") }

  private func fault(_ text: String) -> Finding.Fault {
    let files = Self.files(in: text)
    if Self.namesMissingUser(text) { return .failure(text, .root("systemd-sysusers"), reload) }
    if !files.isEmpty, text.contains(SystemError.text(of: EACCES)) {
      return Finding.Fault.failure(text, .root("chmod", "o+r", files[0]), reload).being(.manifestsIgnored)
    }
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

  /// Returns the warning for a manifest that admits none of the users of its service, or leaves open which of several
  /// is the app.
  private func claimFault(_ claim: Claim) -> Finding.Fault? {
    let edit = Remedy.edit(asRoot: true, [claim.path])
    let named = claim.named.compactMap { users[$0] }
    let ranges = UserRanges(firstRegular: firstRegular)
    let admitted = claim.running.filter { claim.named.isEmpty ? ranges.isForServices($0) : named.contains($0) }
    if admitted.isEmpty {
      let names = claim.running.map { user in users.filter { $0.value == user }.keys.min() ?? "\(user)" }
      let setting =
        claim.named.isEmpty
        ? "without User=, which admits no regular user" : "with User=\(claim.named.joined(separator: " "))"
      return .warning(
        "\(claim.path) names Unit=\(claim.unit) \(setting), but \(claim.unit) runs as \(names.joined(separator: ", ")): "
          + "its processes are another app. If they are this app, add the line "
          + "'User=\((claim.named + names).joined(separator: " "))'", edit, reload)
    }
    guard claim.named.isEmpty, claim.running.count > 1 else { return nil }
    let numbers = claim.running.map { "\($0)" }.joined(separator: ", ")
    return .warning(
      "\(claim.path) names Unit=\(claim.unit) without User=, but \(claim.unit) runs as several users (\(numbers)): the "
        + "app is root and all system users of the unit; name the intended users with User=", edit)
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
          .root("chmod", status.kind == .folder ? "o+rx" : "o+r", place.path), reload
        ).causing(.manifestsIgnored))
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
