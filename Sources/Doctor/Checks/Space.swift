import LinuxSystem

/// The room where the state is.
struct SpaceFacts: Sendable {
  /// The folder with all state; nil where it is not known.
  let folder: String?
  /// What is free there; nil where that may not be asked.
  var space: FileSystemSpace?
  /// Why it may not be asked.
  var reason = Examination.untold("where the state is")

  /// Below these a write may be refused any moment: the log of the store alone takes as much as 4 MiB.
  static let failing = (bytes: UInt64(16) << 20, files: UInt64(32))
  /// Below these it is time to look.
  static let short = (bytes: UInt64(64) << 20, files: UInt64(1_024))
}

extension SpaceFacts {
  /// Asks.
  init(_ examination: Examination) {
    folder = examination.stateDirectory
    guard let folder else { return }
    do throws(SystemError) {
      space = try FileSystemSpace(of: folder)
    } catch {
      reason = "\(error)"
    }
  }

  /// What that means.
  var finding: Finding {
    guard let folder, let space else { return Finding(skipped: reason) }
    var found: [Finding.Fault] = []
    let room = "\(space.freeBytes >> 20) MiB are free where \(folder) is"
    if space.freeBytes < Self.failing.bytes {
      found.append(.failure("only \(room)", .anybody("df", "-h", folder)))
    } else if space.freeBytes < Self.short.bytes {
      found.append(.warning("only \(room)", .anybody("df", "-h", folder)))
    }
    if let files = space.freeFiles, files < Self.short.files {
      let cause = "only \(files) more files can be made where \(folder) is"
      let show = Remedy.anybody("df", "-i", folder)
      found.append(files < Self.failing.files ? .failure(cause, show) : .warning(cause, show))
    }
    return Finding(
      found,
      facts: facts(
        ("directory", folder), ("free-bytes", "\(space.freeBytes)"), ("free-files", space.freeFiles.map { "\($0)" })))
  }
}
