import CSystemd
import Glibc

/// A change that a folder's watcher is told about (inotify(7)).
///
/// The kernel may report several changes as one, and more changes may have happened since the report. So a program
/// should take a report only as a reason to read the folder again.
package enum FolderChange: Equatable, Sendable {
  /// An entry was created, written, moved in or out, or removed. Nil if its name is not UTF-8.
  case entry(String?)
  /// The folder itself was removed, moved away or unmounted, so no more changes come. May be reported more than once.
  case folderIsGone
  /// More changes happened than the kernel keeps, so any entry may have changed.
  case overflow

  /// The mask leaves out IN_OPEN, IN_ACCESS and IN_CLOSE_NOWRITE, because a program that reads the
  /// folder must not wake itself.
  static let mask =
    UInt32(IN_CREATE | IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF)
    | UInt32(IN_ONLYDIR)

  /// Takes the change from an inotify record. Nil if there is no record.
  init?(_ record: UnsafePointer<inotify_event>?) {
    guard let record = unsafe record else { return nil }
    let mask = unsafe record.pointee.mask
    if mask & UInt32(IN_Q_OVERFLOW) != 0 {
      self = .overflow
    } else if mask & UInt32(IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT) != 0 {
      self = .folderIsGone
    } else {
      // The name follows the record, padded with zeros.
      let name = unsafe UnsafeRawBufferPointer(start: record + 1, count: Int(record.pointee.len))
      self = .entry(unsafe String(validating: name.prefix { $0 != 0 }, as: UTF8.self))
    }
  }
}
