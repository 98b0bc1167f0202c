import CSystemd
import Glibc

/// What a folder's watcher is told (inotify(7)). Several changes may be told as one, and by the time they are told more may
/// have happened, so a program looks at the folder anew and takes this for no more than a reason to do so.
package enum FolderChange: Equatable, Sendable {
  /// An entry was made, written, moved in or out, or removed; nil where its name is not UTF-8.
  case entry(String?)
  /// The folder itself was removed, moved away or unmounted: nothing more comes. It may be told more than once.
  case folderIsGone
  /// More happened than the kernel keeps for us, so any entry may have changed.
  case overflow

  /// Neither IN_OPEN, IN_ACCESS nor IN_CLOSE_NOWRITE: what a program does to look at the folder must not wake it again.
  static let mask =
    UInt32(IN_CREATE | IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF)
    | UInt32(IN_ONLYDIR)

  /// Takes one record apart; nil where there is none.
  init?(_ record: UnsafePointer<inotify_event>?) {
    guard let record = unsafe record else { return nil }
    let mask = unsafe record.pointee.mask
    if mask & UInt32(IN_Q_OVERFLOW) != 0 {
      self = .overflow
    } else if mask & UInt32(IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT) != 0 {
      self = .folderIsGone
    } else {
      // The name follows the record, filled up with zeros.
      let name = unsafe UnsafeRawBufferPointer(start: record + 1, count: Int(record.pointee.len))
      self = .entry(unsafe String(validating: name.prefix { $0 != 0 }, as: UTF8.self))
    }
  }
}
