import Glibc
package import LinuxSystem

/// The reason why a state directory cannot be used.
package enum StateDirectoryFailure: Error, CustomStringConvertible {
  /// Another daemon holds the lock.
  case held(path: String, by: String)
  /// Owner or mode would allow others to read or change the directory.
  case unsafe(path: String, reason: String)
  /// A system call failed.
  case system(SystemError)

  /// The cause, with the path and, for a wrong mode, the command that fixes it.
  package var description: String {
    switch self {
    case .held(let path, let holder): "\(path) is in use by another identityd (\(holder)); stop it first"
    case .unsafe(let path, let reason): "\(path): \(reason)"
    case .system(let error): error.description
    }
  }
}

/// The folder that holds all state, locked for one daemon.
package struct StateDirectory: ~Copyable, Sendable {
  let folder: Folder
  /// Whether the files are only read, because the file system is mounted read-only or the disk refuses calls.
  ///
  /// The lock may then be shared with other readers, or missing if its file is missing or cannot be opened.
  private(set) var isReadOnly: Bool
  /// The error, with advice, for which the files are only read although the file system is writable; nil if there is none.
  private(set) var refusal: String?
  private var lock: FileLock?
  /// The mount when the directory was opened; nil if the kernel does not report it.
  private var mount: Mount?
  /// The kernel's ID of this boot; nil if it cannot be read.
  let boot: String?
  /// Whether the last daemon that could write ran in this boot, or in an unknown one.
  let isOfThisBoot: Bool

  private static let lockName = "lock"

  /// Opens the folder, creating it if it is missing, and takes its lock.
  ///
  /// The folder must belong to this user and be closed to all others. Symbolic links in it are not followed.
  package static func open(path: String) throws(StateDirectoryFailure) -> StateDirectory {
    do {
      do {
        return try Patience.repeating { try attempt(path) }
      } catch let error as SystemError where error.isOfDisk {
        return try attempt(path, withoutLock: error)
      }
    } catch let failure as StateDirectoryFailure {
      throw failure
    } catch let error as SystemError {
      throw .system(error)
    } catch {
      throw .unsafe(path: path, reason: "\(error)")
    }
  }

  /// Opens the folder.
  ///
  /// - Parameter refusal: an earlier error, after which the folder is only read if its lock cannot be taken.
  private static func attempt(_ path: String, withoutLock refusal: SystemError? = nil) throws -> StateDirectory {
    try Folder.create(path: path, mode: 0o700)
    let folder = try Folder(path: path)
    // The lock comes before the check of the owner: the holder is the more useful answer to an admin who starts a
    // second daemon as root.
    var isReadOnly = false
    var known: FileLock?
    var fault: String?
    do {
      known = try knownLock(folder, &isReadOnly)
    } catch let error as SystemError where error.isOfDisk && refusal != nil {
      (fault, isReadOnly) = (error.advised, true)
    }
    let (owner, mode) = try folder.ownerAndMode()
    guard owner == Accounts.ownUserID else {
      throw StateDirectoryFailure.unsafe(
        path: path, reason: "it belongs to uid \(owner), not to uid \(Accounts.ownUserID); change its owner")
    }
    guard mode & 0o077 == 0 else {
      throw StateDirectoryFailure.unsafe(
        path: path, reason: "other users can access it (mode \(String(mode, radix: 8))); run 'chmod 0700 \(path)'")
    }
    var held: FileLock?
    do {
      held = isReadOnly ? known : try lock(known, in: folder, &isReadOnly)
    } catch let error as SystemError where error.isOfDisk && refusal != nil {
      (fault, isReadOnly) = (error.advised, true)
    }
    let boot = Self.boot
    let isOfThisBoot = Self.lastBoot(in: folder).map { $0 == boot } ?? true
    // The name of the holder is for messages and for the next start, which do without it.
    if !isReadOnly { try? held?.nameHolder(in: boot) }
    let mount = isReadOnly ? folder.mount() : nil
    return StateDirectory(
      folder: folder, isReadOnly: isReadOnly, refusal: fault, lock: held, mount: mount, boot: boot,
      isOfThisBoot: isOfThisBoot)
  }

  /// The kernel's ID of this boot; nil if it cannot be read.
  private static var boot: String? {
    guard let text = try? Folder(path: "/proc/sys/kernel/random").read("boot_id", limit: 64) else { return nil }
    return String(decoding: text, as: UTF8.self).split(separator: "\n").first.map(String.init)
  }

  /// Returns the boot that the last holder of the lock named; nil if it is unknown.
  private static func lastBoot(in folder: borrowing Folder) -> String? {
    guard let text = try? folder.read(lockName, limit: 128) else { return nil }
    return String(decoding: text, as: UTF8.self).split(separator: "\n").lazy
      .compactMap { $0.hasPrefix("boot ") ? String($0.dropFirst(5)) : nil }.first
  }

  /// Stops writing, because the disk refused a call.
  mutating func giveUpWriting(_ reason: String) {
    if !isReadOnly { refusal = reason }
    isReadOnly = true
  }

  /// Returns whether the file system turned read-only after the folder was opened, and notes that.
  mutating func hasBecomeReadOnly() -> Bool {
    guard !isReadOnly else { return false }
    do {
      _ = try folder.open(Self.lockName, flags: O_RDWR)
      return false
    } catch {
      guard error.code == EROFS else { return false }
      isReadOnly = true
      mount = folder.mount()
      return true
    }
  }

  /// Takes the lock if its file exists.
  ///
  /// - Returns: nil if there is no file, or if this user may not open it: the check of the owner then tells why.
  private static func knownLock(_ folder: borrowing Folder, _ isReadOnly: inout Bool) throws -> FileLock? {
    guard try folder.status(of: lockName) != nil else { return nil }
    do {
      return try acquireLock(on: try folder.open(lockName, flags: O_RDWR), in: folder)
    } catch let error as SystemError where error.code == EACCES {
      return nil
    } catch let error as SystemError where error.code == EROFS {
      isReadOnly = true
      return try acquireLock(on: try folder.open(lockName, flags: O_RDONLY), in: folder, isShared: true)
    }
  }

  /// Creates the file of the lock if it is missing.
  ///
  /// - Returns: nil if the file system is read-only, so that nobody can hold a lock either.
  private static func lock(
    _ known: consuming FileLock?, in folder: borrowing Folder, _ isReadOnly: inout Bool
  ) throws -> FileLock? {
    if let known { return known }
    do {
      return try acquireLock(on: try folder.open(lockName, flags: O_RDWR | O_CREAT, mode: 0o600), in: folder)
    } catch let error as SystemError where error.code == EROFS {
      isReadOnly = true
      return nil
    }
  }

  private static func acquireLock(
    on file: consuming Descriptor, in folder: borrowing Folder, isShared: Bool = false
  ) throws -> FileLock {
    let lock = try FileLock(of: file, name: "\(folder.path)/\(lockName)", isShared: isShared)
    guard let lock else { throw held(folder) }
    return lock
  }

  /// Takes the directory for writing, and its lock for this daemon alone, if the file system is writable now.
  ///
  /// - Returns: false if the file system is still read-only.
  /// - Throws: EBUSY if another daemon reads or holds the directory, or the error of the file of the lock.
  mutating func becomeWritable() throws(SystemError) -> Bool {
    guard isReadOnly else { return true }
    let file: Descriptor
    do {
      file = try folder.open(Self.lockName, flags: O_RDWR | O_CREAT, mode: 0o600)
    } catch  where error.code == EROFS {
      return false
    }
    // A lock for writing needs a descriptor for writing, and the shared lock on the other one would exclude it.
    lock = nil
    guard let own = try FileLock(of: file, name: "\(folder.path)/\(Self.lockName)") else {
      lock = try? Self.acquireLock(on: folder.open(Self.lockName, flags: O_RDONLY), in: folder, isShared: true)
      throw SystemError(call: "lock \(folder.path), which another identityd uses", code: EBUSY)
    }
    // The name of the holder is for messages only.
    try? own.nameHolder(in: Self.boot)
    lock = consume own
    isReadOnly = false
    return true
  }

  /// Whether the file system has become writable but the mount has not, in the mount namespace of this process.
  ///
  /// The next process of the service gets a new copy of the mount, which is writable.
  var needsNewMount: Bool {
    guard isReadOnly, mount?.isFileSystemReadOnly == true, let now = folder.mount() else { return false }
    return now.isMountReadOnly && !now.isFileSystemReadOnly
  }

  /// Whether only the mount is read-only, so that no change of the file system tells when it becomes writable.
  var hasReadOnlyMount: Bool { mount?.isMountReadOnly == true && mount?.isFileSystemReadOnly == false }

  private static func held(_ folder: borrowing Folder) -> StateDirectoryFailure {
    let text = (try? folder.read(lockName, limit: 128)).flatMap { $0 }.map { String(decoding: $0, as: UTF8.self) } ?? ""
    let holder = text.split(separator: "\n").first.map(String.init) ?? "pid unknown"
    return .held(path: folder.path, by: holder)
  }
}

extension FileLock {
  /// Writes the process ID of this process, the holder, into the file.
  ///
  /// - Parameter boot: the ID of this boot.
  fileprivate func nameHolder(in boot: String?) throws(SystemError) {
    try file.truncate(name: "lock")
    _ = try file.write(Array("pid \(ProcessGuard.processID)\n\(boot.map { "boot \($0)\n" } ?? "")".utf8))
  }
}
