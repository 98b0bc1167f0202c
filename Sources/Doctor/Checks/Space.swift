import LinuxSystem

/// The file system of the state: whether it can be written, and its free space.
struct SpaceFacts: Sendable {
  /// The state directory; nil if it is unknown.
  let folder: String?
  /// The free space; nil if it could not be determined.
  var space: FileSystemSpace?
  /// The reason why the free space could not be determined.
  var reason = Examination.untold("the state directory")
  /// The mount of the state directory; nil if it is unknown.
  var mount: Mount?
  /// The daemon's copy of the mount, in the mount namespace of the service; nil if it is unknown.
  var daemonMount: Mount?
  /// The files in the state directory that are none of the daemon's.
  var foreign = ForeignFiles()
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
    mount = Mount.containing(folder, for: examination.isSystem ? "1" : "self")
    // Only root may read the mounts of the daemon.
    daemonMount = examination.answers?["pid"].flatMap { Mount.containing(folder, for: $0) }
    if let state = examination.answers?["store"] {
      resume = StoreFacts.isInOrder(state) ? [] : [examination.restart]
    } else if let manager = examination.manager {
      resume = [manager.resetUnits, manager.restartUnits]
    }
    foreign = ForeignFiles(in: folder)
    do throws(SystemError) {
      space = try FileSystemSpace(of: folder)
    } catch {
      reason = "\(error)"
    }
  }

  /// The judgement of the facts.
  var finding: Finding {
    guard let folder, let space else { return Finding(skipped: reason) }
    var found = readOnly(folder)
    let room =
      "\(space.freeBytes >> 20) MiB are free on the file system of \(folder)"
      + (foreign.longest.map { ". These files there are not identityd's: \($0); move them elsewhere" } ?? "")
    let look = foreign.longest == nil ? Remedy.anybody("df", "-h", folder) : .root("ls", "-lh", folder)
    if space.freeBytes < Self.failing.bytes {
      found.append(.failure("only \(room)", look).causing(.serviceFails, .storeFails, .fleetStops))
    } else if space.freeBytes < Self.short.bytes {
      found.append(.warning("only \(room)", look))
    }
    if let files = space.freeFiles, files < Self.short.files {
      let cause = "only \(files) more files can be created on the file system of \(folder)"
      let show = Remedy.anybody("df", "-i", folder)
      found.append(
        files < Self.failing.files
          ? .failure(cause, show).causing(.serviceFails, .storeFails, .fleetStops) : .warning(cause, show))
    }
    return Finding(
      found,
      facts: facts(
        ("directory", folder), ("free-bytes", "\(space.freeBytes)"), ("free-files", space.freeFiles.map { "\($0)" })))
  }

  /// Returns the fault of a mount that is read-only for everybody, or for the daemon alone; none if the daemon can write.
  private func readOnly(_ folder: String) -> [Finding.Fault] {
    guard let mount else { return [] }
    if mount.isReadOnly {
      // A bind mount alone is read-only: the flag of the file system, which other mounts share, stays as it is.
      let options = mount.isFileSystemReadOnly ? "remount,rw" : "remount,bind,rw"
      let cause = "\(folder) is on a file system that is mounted read-only at \(mount.path)"
      let fault = Finding.Fault.failure(cause, mend: [.root("mount", "-o", options, mount.path)] + resume)
      return [fault.causing(.serviceFails, .storeFails, .fleetStops)]
    }
    guard let daemonMount, daemonMount.isReadOnly, !resume.isEmpty else { return [] }
    let cause =
      "\(folder) can be written, but not by the daemon: its copy of the mount at \(daemonMount.path) is from the time "
      + "when the mount was read-only, and only a restart makes a new copy"
    return [.failure(cause, mend: resume).causing(.storeFails, .fleetStops)]
  }
}
