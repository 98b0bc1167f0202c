import LinuxSystem

/// The free space in the file system of the state.
struct SpaceFacts: Sendable {
  /// The state directory; nil if it is unknown.
  let folder: String?
  /// The free space; nil if it could not be determined.
  var space: FileSystemSpace?
  /// The reason why the free space could not be determined.
  var reason = Examination.untold("the state directory")

  /// The thresholds of a failure. With less space a write may fail at any moment: the store's log alone takes
  /// up to 4 MiB.
  static let failing = (bytes: UInt64(16) << 20, files: UInt64(32))
  /// The thresholds of a warning.
  static let short = (bytes: UInt64(64) << 20, files: UInt64(1_024))
}

extension SpaceFacts {
  /// Gathers the facts.
  init(_ examination: Examination) {
    folder = examination.stateDirectory
    guard let folder else { return }
    do throws(SystemError) {
      space = try FileSystemSpace(of: folder)
    } catch {
      reason = "\(error)"
    }
  }

  /// The judgement of the facts.
  var finding: Finding {
    guard let folder, let space else { return Finding(skipped: reason) }
    var found: [Finding.Fault] = []
    let room = "\(space.freeBytes >> 20) MiB are free on the file system of \(folder)"
    if space.freeBytes < Self.failing.bytes {
      found.append(.failure("only \(room)", .anybody("df", "-h", folder)))
    } else if space.freeBytes < Self.short.bytes {
      found.append(.warning("only \(room)", .anybody("df", "-h", folder)))
    }
    if let files = space.freeFiles, files < Self.short.files {
      let cause = "only \(files) more files can be created on the file system of \(folder)"
      let show = Remedy.anybody("df", "-i", folder)
      found.append(files < Self.failing.files ? .failure(cause, show) : .warning(cause, show))
    }
    return Finding(
      found,
      facts: facts(
        ("directory", folder), ("free-bytes", "\(space.freeBytes)"), ("free-files", space.freeFiles.map { "\($0)" })))
  }
}
