import Glibc
import IdentityCore
import LinuxSystem
import Systemd

/// The watch on the manifest folders, which requests a survey after changes.
///
/// An event of the kernel only tells that something changed. Once the folders have been quiet for a moment, they are
/// read as a whole and compared with the registry.
///
/// A watch stays with the folder that a path led to when the watch was set. A mount makes the path lead to another
/// folder, and no watch tells that, so the mounts are watched too (`systemd-sysext merge`, a late /usr/local).
final class AppFolders {
  private let loop: EventLoop
  private let survey: ([String]) -> Void
  private let warn: (String) -> Void
  private var folders: [String]
  /// The paths of further files that each survey reads.
  private let files: [String]
  /// The warnings given so far. Each is given once, not at each survey.
  private var said: Set<String> = []
  private var sources: [EventSource] = []
  /// The watch on the mounts; nil if the kernel does not tell of them. See ``noteMount()``.
  private(set) var mounts: MountWatch?
  /// The paths of the folders, of all folders above them and of the manifests in them, and the files that they led to
  /// when the watches were set.
  private var watched: [(path: String, file: FileIdentity?)] = []
  private var settling: EventSource?
  /// The time of the first change since the last survey, in microseconds of the monotonic clock.
  private var restlessSince: UInt64?
  private let clock: () -> UInt64

  /// Starts watching. Does not request the first survey, which takes place before any client is served.
  ///
  /// - Parameters:
  ///   - files: the paths of further files that each survey reads.
  ///   - survey: requests a survey of the folders.
  ///   - warn: reports a folder that cannot be watched.
  init(
    _ folders: [String], files: [String] = [], loop: EventLoop, clock: @escaping () -> UInt64,
    survey: @escaping ([String]) -> Void,
    warn: @escaping (String) -> Void
  ) throws(SystemdError) {
    self.loop = loop
    self.folders = folders
    self.files = files
    self.clock = clock
    self.survey = survey
    self.warn = warn
    settling = try loop.timer(after: UInt64.max / 2, accuracy: 1_000) { [unowned self] in lookNow() }
    settling?.disable()
    do throws(SystemError) {
      // Opened before the watches are set: a later mount is told.
      mounts = try MountWatch()
    } catch {
      complain("mounts are not noticed: \(error); reload the daemon after a mount on a folder of manifests")
    }
    watch()
  }

  /// Watches the folders of a reloaded configuration, and requests a survey even if they are the same.
  func use(_ folders: [String]) {
    self.folders = folders
    lookNow()
  }

  /// Takes in the result of a survey. After a survey with faults, schedules another one.
  ///
  /// A fault may be corrected without a change in a watched folder, for example when a user is created or a file's
  /// mode changes.
  func noteSurvey(isInOrder: Bool) {
    guard !isInOrder, restlessSince == nil else { return }
    settling?.arm(after: UInt64(Bound.surveyAgainMilliseconds) * 1_000)
  }

  private func lookNow() {
    restlessSince = nil
    // Watches before the survey, so that a change in between is not missed.
    watch()
    survey(folders)
  }

  private func somethingHappened() {
    let now = clock()
    let since = restlessSince ?? now
    restlessSince = since
    let latest = since + UInt64(Bound.restlessMilliseconds) * 1_000
    let pause = UInt64(Bound.quietMilliseconds) * 1_000
    settling?.arm(after: min(pause, latest > now ? latest - now : 0))
  }

  /// Takes in a mount or unmount anywhere. Most concern other folders, so a survey is requested only if a path leads
  /// elsewhere now.
  func noteMount() { if watched.contains(where: { FileIdentity(of: $0.path) != $0.file }) { somethingHappened() } }

  /// Returns the paths of all folders above a path, and the path itself.
  private static func paths(to path: String) -> [String] {
    path.split(separator: "/").reduce(into: ["/"]) { paths, name in
      paths.append(paths.count == 1 ? "/\(name)" : "\(paths[paths.count - 1])/\(name)")
    }
  }

  /// Returns the paths of the manifests in a folder: a mount can replace a single one of them.
  private static func manifests(in folder: String) -> [String] {
    // A folder that cannot be read is a fault that the survey names.
    let names = (try? ConfigurationAccess.names(in: folder)) ?? []
    let manifests = names.filter { $0.utf8.suffix(4).elementsEqual(".app".utf8) }
    return manifests.prefix(Bound.manifests).map { "\(folder)/\($0)" }
  }

  /// Watches every folder. If a folder does not exist, watches the nearest existing folder above it for the next name
  /// on the path.
  ///
  /// For a file, watches its folder for the file's name, because most programs replace a file instead of writing to it.
  private func watch() {
    // Looked up before the watches are set: a mount in between is noticed, and leads to another survey.
    let paths = Set((folders + files).flatMap(Self.paths(to:))).sorted() + folders.flatMap(Self.manifests(in:))
    watched = paths.map { ($0, FileIdentity(of: $0)) }
    sources = []
    for folder in folders { watch(folder, for: nil) }
    for file in files {
      let parts = file.split(separator: "/")
      guard let name = parts.last else { continue }
      watch("/" + parts.dropLast().joined(separator: "/"), for: String(name))
    }
  }

  private func watch(_ path: String, for name: String?) {
    do {
      sources.append(
        try loop.watch(folder: path) { [unowned self] change in
          if case .entry(let changed?) = change, let name, changed != name { return }
          somethingHappened()
        })
    } catch {
      let parts = path.split(separator: "/")
      guard error.code == ENOENT, let last = parts.last else { return complain("\(path) cannot be watched: \(error)") }
      watch("/" + parts.dropLast().joined(separator: "/"), for: String(last))
      // The folder may have been created between the two calls. Changes inside it would then be missed.
      if let source = try? loop.watch(folder: path, { [unowned self] _ in somethingHappened() }) {
        sources.append(source)
      }
    }
  }

  private func complain(_ text: String) {
    if said.insert(text).inserted { warn(text) }
  }
}
