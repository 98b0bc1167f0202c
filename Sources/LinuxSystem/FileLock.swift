import CLinux
import Glibc

/// An open file with a lock on it (F_OFD_SETLK, fcntl(2)), released at the end of the value's lifetime.
///
/// The lock belongs to the open file description. Closing another descriptor of the same file in this process
/// does not release the lock.
package struct FileLock: ~Copyable, Sendable {
  /// The locked file.
  package let file: Descriptor

  /// Takes the lock without waiting.
  ///
  /// - Parameter isShared: whether others may share the lock. A file that is open only for reading
  ///   allows no other kind of lock.
  /// - Returns: nil if another open file description holds the lock.
  package init?(of file: consuming Descriptor, name: String, isShared: Bool = false) throws(SystemError) {
    let number = file.number
    do {
      try system("lock \(name)") { clinux_lock(number, isShared ? 1 : 0) }
    } catch  where error.code == EAGAIN || error.code == EACCES {
      return nil
    }
    self.file = file
  }

  deinit {
    // Until its exec, a forked child shares the open file description, so closing the file would not release the lock.
    _ = clinux_unlock(file.number)
  }
}
