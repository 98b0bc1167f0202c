import IdentityCore
import LinuxSystem

/// Reads all files of a store from the disk, before any of their content is used; see ``DiskReading``.
struct DiskCheck {
  /// The source of the content: the page cache if pages of a file could be neither dropped nor compared with the disk.
  private(set) var source = DiskReading.Source.disk
  /// The reason why an earlier write is not on the disk; nil if all writes are.
  private(set) var lostWrite: String?
  /// The reason why a file cannot be read without which nothing can be served; nil if all of them can.
  private(set) var failure: String?
  /// The reason why a file cannot be read without which the store can be read, but not written; nil if all of them can.
  private(set) var lesserFailure: String?

  /// Reads the files.
  ///
  /// - Throws: errors that have another cause than the disk.
  init(in directory: borrowing StateDirectory) throws {
    let drops = !directory.isReadOnly
    for (name, use) in Store.files {
      do {
        var lost: SystemError?
        let reading = try Patience.repeating {
          try DiskReading.read(name, in: directory.folder, drops: drops, &lost)
        }
        guard let reading else { continue }
        if reading.source == .cache { source = .cache }
        if let error = reading.lostWrite { lostWrite = "\(error)" }
      } catch  where error.isOfDisk {
        switch use {
        case .reading:
          failure = error.advised
          return
        case .writing: lesserFailure = error.advised
        // Its reader takes it for a missing key: the items are locked.
        case .items: break
        }
      }
    }
  }
}

extension DiskCheck {
  /// Returns whether the disk lets each file be read without which nothing can be served. Tries it once.
  static func succeeds(in directory: borrowing StateDirectory) -> Bool {
    var lost: SystemError?
    do {
      for (name, use) in Store.files where use == .reading {
        _ = try DiskReading.read(name, in: directory.folder, drops: !directory.isReadOnly, &lost)
      }
      return true
    } catch {
      return false
    }
  }
}

extension Store {
  /// The reason why a start needs a file: to serve anything, to write the store, or to use the items.
  fileprivate enum FileUse { case reading, writing, items }

  /// All files whose content a start uses. The database and its WAL come first: a start that cannot read them
  /// needs no key.
  fileprivate static let files: [(String, FileUse)] = [
    (fileName, .reading), (logName, .reading), (StoreKey.fileName, .reading), (rewrittenName, .writing),
    (Witness.fileName, .writing), (LatestWitness.fileName, .writing), (MasterKey.fileName, .items),
    (MasterKey.nextFileName, .items),
  ]
}
