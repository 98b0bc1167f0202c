import LinuxSystem

/// The file system of the state: whether it can be written, and its free space.
struct SpaceFacts: Sendable {
  /// The state directory; nil if it is unknown.
  let folder: String?
  /// The free space; nil if it could not be determined.
  var space: FileSystemSpace?
  /// The reason why the free space could not be determined.
  var reason = Examination.untold("the state directory")
  /// The mount of the file system, if it is read-only.
  var readOnlyMount: String?
  /// The remedies that follow the remount: none for a daemon whose store is in order.
  var resume: [Remedy] = []

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
    // The system's daemon writes to the mount of PID 1. This process may have another one, such as in a sandbox.
    let mount = Mount.containing(folder, for: examination.isSystem ? "1" : "self")
    readOnlyMount = mount.flatMap { $0.isReadOnly ? $0.path : nil }
    if let state = examination.answers?["store"] {
      resume = state == "ok" ? [] : [examination.restart]
    } else if examination.isSystem {
      resume = [.resetUnits, .restartUnits]
    }
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
    if let readOnlyMount {
      let remount = Remedy.root("mount", "-o", "remount,rw", readOnlyMount)
      found.append(
        Finding.Fault(
          isWarning: false, cause: "\(folder) is on a file system that is mounted read-only at \(readOnlyMount)",
          mend: [remount] + resume
        ).causing(.serviceFails, .storeFails))
    }
    let room = "\(space.freeBytes >> 20) MiB are free on the file system of \(folder)"
    if space.freeBytes < Self.failing.bytes {
      found.append(.failure("only \(room)", .anybody("df", "-h", folder)).causing(.serviceFails, .storeFails))
    } else if space.freeBytes < Self.short.bytes {
      found.append(.warning("only \(room)", .anybody("df", "-h", folder)))
    }
    if let files = space.freeFiles, files < Self.short.files {
      let cause = "only \(files) more files can be created on the file system of \(folder)"
      let show = Remedy.anybody("df", "-i", folder)
      found.append(
        files < Self.failing.files
          ? .failure(cause, show).causing(.serviceFails, .storeFails) : .warning(cause, show))
    }
    return Finding(
      found,
      facts: facts(
        ("directory", folder), ("free-bytes", "\(space.freeBytes)"), ("free-files", space.freeFiles.map { "\($0)" })))
  }
}
