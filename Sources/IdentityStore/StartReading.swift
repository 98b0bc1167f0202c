import Glibc
import IdentityCore
import LinuxSystem

/// Has all files of a store read from the disk before anything in them is believed; see ``DiskReading``.
struct StartReading {
  /// Whether some of what is read comes from the page cache, because it could not be dropped.
  private(set) var source = DiskReading.Source.disk
  /// Why something that was written earlier is not on the disk; nil where all of it is.
  private(set) var lostWrite: String?
  /// Why a file cannot be read; nil where all can.
  private(set) var failure: String?

  /// How long a disk that does not let itself be read is asked again, in microseconds, and the first pause between two
  /// tries, which doubles each time.
  private static let patience: UInt64 = 5_000_000
  private static let firstPause: UInt32 = 50_000

  /// Reads them.
  ///
  /// - Throws: the errors that no second try would mend.
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
  /// All files whose content a start believes, the database and its log first: a start that cannot read these needs no key.
  fileprivate static let fileNames = [
    fileName, logName, rewrittenName, StoreKey.fileName, MasterKey.fileName, MasterKey.nextFileName, Witness.fileName,
    LatestWitness.fileName,
  ]
}

extension SystemError {
  /// Whether it says that the disk could not be read, which may be so for a moment.
  fileprivate var isOfMedium: Bool { [EIO, ENODATA, EREMOTEIO, ETIMEDOUT, ENOLINK, EBADMSG, EUCLEAN].contains(code) }
}
