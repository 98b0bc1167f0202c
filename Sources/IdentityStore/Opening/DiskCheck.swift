import Glibc
import IdentityCore
import LinuxSystem

/// Reads all files of a store from the disk, before any of their content is used; see ``DiskReading``.
struct DiskCheck {
  /// The source of the content: the page cache if pages of a file could be neither dropped nor compared with the disk.
  private(set) var source = DiskReading.Source.disk
  /// The reason why an earlier write is not on the disk; nil if all writes are.
  private(set) var lostWrite: String?
  /// The reason why a file cannot be read; nil if all files can.
  private(set) var failure: String?

  /// The time for which reads of a failing disk are repeated, and the first pause between two attempts, both in
  /// microseconds. The pause doubles each time.
  private static let patience: UInt64 = 5_000_000
  private static let firstPause: UInt32 = 50_000

  /// Reads the files.
  ///
  /// - Throws: errors that a second attempt would not fix.
  init(in folder: borrowing Folder) throws(SystemError) {
    let deadline = Clock.monotonicMicroseconds + Self.patience
    for name in Store.fileNames {
      var pause = Self.firstPause
      while true {
        do {
          guard let reading = try DiskReading.read(name, in: folder) else { break }
          if reading.source == .cache { source = .cache }
          if let error = reading.lostWrite { lostWrite = "\(error)" }
          break
        } catch  where error.isOfMedium {
          guard Clock.monotonicMicroseconds < deadline else {
            failure = "\(error)"
            return
          }
          usleep(pause)
          pause *= 2
        }
      }
    }
  }
}

extension Store {
  /// All files whose content a start uses. The database and its WAL come first: a start that cannot read them
  /// needs no key.
  fileprivate static let fileNames = [
    fileName, logName, rewrittenName, StoreKey.fileName, MasterKey.fileName, MasterKey.nextFileName, Witness.fileName,
    LatestWitness.fileName,
  ]
}

extension SystemError {
  /// Whether the error means that the disk could not be read, which may be temporary.
  fileprivate var isOfMedium: Bool { [EIO, ENODATA, EREMOTEIO, ETIMEDOUT, ENOLINK, EBADMSG, EUCLEAN].contains(code) }
}
