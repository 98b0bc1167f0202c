import CLinux
import Glibc

/// An open file and its lock (F_OFD_SETLK, fcntl(2)), which is freed when the owner lets go of it.
///
/// It belongs to the open file, so nothing else in the process frees it by closing the same file.
package struct FileLock: ~Copyable, Sendable {
  /// The file.
  package let file: Descriptor

  /// Takes the lock.
  ///
  /// - Parameter isShared: whether others may share it, which is all that a file open for reading can have.
  /// - Returns: nil when another open file holds it.
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
    // Closing alone leaves it held for as long as a child of a fork, until its exec, has the same open file.
    _ = clinux_unlock(file.number)
  }
}
