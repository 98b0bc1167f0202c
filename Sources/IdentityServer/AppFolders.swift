import Glibc
import IdentityCore
import Systemd

/// Watches the folders of manifests, and says when it is time to read them.
///
/// What is told by the kernel says only that something happened: the folders are read as a whole once they were quiet for a
/// moment, and compared with what is known.
final class AppFolders {
  private let loop: EventLoop
  private let survey: ([String]) -> Void
  private let warn: (String) -> Void
  private var folders: [String]
  /// Further files that are read with each look.
  private let files: [String]
  /// What was said of folders that cannot be watched: once, not at each look.
  private var said: Set<String> = []
  private var sources: [EventSource] = []
  private var settling: EventSource?
  /// When the first of the changes that are not read yet was told, in microseconds of the monotonic clock.
  private var restlessSince: UInt64?
  private let clock: () -> UInt64

  /// Starts watching. The first look is not its own: it comes before anybody is served.
  ///
  /// - Parameters:
  ///   - files: paths of further files that are read with each look.
  ///   - survey: has the folders read.
  ///   - warn: tells of a folder that cannot be watched.
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
    watch()
  }

  /// The configuration names other folders, or the same.
  func use(_ folders: [String]) {
    self.folders = folders
    lookNow()
  }

  /// A look is done. What was wrong may be mended where nothing tells of it (a user that was made, a file's mode): so it
  /// is looked at again in a moment.
  func take(isInOrder: Bool) {
    guard !isInOrder, restlessSince == nil else { return }
    settling?.arm(after: UInt64(Bound.surveyAgainMilliseconds) * 1_000)
  }

  private func lookNow() {
    restlessSince = nil
    // Watched before they are read, so that nothing that happens in between is missed.
    watch()
    survey(folders)
  }

  private func somethingHappened() {
    let now = clock()
    let since = restlessSince ?? now
    restlessSince = since
    let latest = since + UInt64(Bound.restlessMilliseconds) * 1_000
    let pause = UInt64(Bound.settleMilliseconds) * 1_000
    settling?.arm(after: min(pause, latest > now ? latest - now : 0))
  }

  /// Watches every folder; for one that is not there, the nearest folder above it for the name that leads there. Of a file
  /// the folder is watched for its name, because most programs put another file in its place.
  private func watch() {
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
      // It may have been made between the two calls, and then nothing would tell of what is in it.
      if let source = try? loop.watch(folder: path, { [unowned self] _ in somethingHappened() }) {
        sources.append(source)
      }
    }
  }

  private func complain(_ text: String) {
    if said.insert(text).inserted { warn(text) }
  }
}
