import CSQLite
import Glibc
import LinuxSystem

/// The time for which a start repeats what the disk refuses. One refusal proves nothing about the disk.
struct Patience {
  private let deadline = Clock.monotonicMicroseconds + 5_000_000
  /// The pause before the next attempt, in microseconds. It doubles each time.
  private var pause: UInt32 = 50_000
  private var denials = 0

  /// The number of further attempts after a refusal that lasts in most cases.
  private static let mostDenials = 2

  /// Waits before another attempt.
  ///
  /// - Returns: false, without a wait, if the error has another cause than the disk, or if the time is over.
  mutating func waits(after error: any Error) -> Bool {
    guard error.isOfDisk, Clock.monotonicMicroseconds < deadline else { return false }
    if error.isDenial {
      denials += 1
      guard denials <= Self.mostDenials else { return false }
    }
    usleep(pause)
    pause *= 2
    return true
  }

  /// Runs a closure until it succeeds or the time is over.
  static func repeating<Result: ~Copyable>(_ body: () throws -> Result) throws -> Result {
    var patience = Patience()
    while true {
      do {
        return try body()
      } catch  where patience.waits(after: error) {
        continue
      }
    }
  }
}

extension Error {
  /// Whether the disk or the file system refused a call, which may be temporary. A lack of memory, of descriptors or of
  /// space is no such refusal.
  var isOfDisk: Bool {
    switch self {
    case let error as SystemError:
      [
        EIO, ENODATA, EREMOTEIO, ETIMEDOUT, ENOLINK, EBADMSG, EUCLEAN, EROFS, ESTALE, EACCES, EPERM,
      ].contains(error.code)
    case let error as DatabaseError: error.isOfDisk
    default: false
    }
  }

  /// Whether the mode or the content of a file, or a security module, refused the call.
  fileprivate var isDenial: Bool {
    switch self {
    case let error as SystemError: error.code == EACCES || error.code == EPERM
    case let error as DatabaseError: error.saysReadOnly
    default: false
    }
  }

  /// The error of a file that a start cannot use, with the advice to an admin.
  var advised: String { isDenial ? explained : "\(self); check the disk" }

  /// The error, with the advice to an admin if it tells what is wrong with a file.
  var explained: String { isDenial ? "\(self); give identityd access to the file" : "\(self)" }

  /// Whether the error means that the file system is, or may be, read-only.
  var saysReadOnly: Bool {
    switch self {
    case let error as SystemError: error.code == EROFS
    case let error as DatabaseError: error.saysReadOnly
    default: false
    }
  }
}

extension DatabaseError {
  /// Whether the disk refused a call of SQLite. SQLite opens a file read-only if it may not be opened for writing.
  var isOfDisk: Bool {
    let isForMemory = code == SQLITE_IOERR | 12 << 8
    return [SQLITE_IOERR, SQLITE_CANTOPEN].contains(code & 0xff) && !isForMemory || saysReadOnly
  }

  /// Whether a file is open for reading only, although it was to be written (SQLITE_READONLY).
  var saysReadOnly: Bool { code & 0xff == SQLITE_READONLY }
}
