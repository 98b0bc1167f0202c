import Glibc

/// A watch on the mounts of this process's mount namespace.
package final class MountWatch: Sendable {
  /// The descriptor, which is ready with POLLPRI after a mount or unmount (proc_pid_mountinfo(5)).
  ///
  /// The kernel tells the first poll after it, and no other. So the descriptor belongs in the set that the process
  /// waits for: in an epoll set within another one, the poll of the outer set takes the news from the inner one.
  package let descriptor: Descriptor

  /// Starts to watch.
  package init() throws(SystemError) {
    descriptor = Descriptor(
      adopting: try system("open /proc/self/mountinfo") {
        unsafe Glibc.open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC)
      })
  }
}

/// The file that a path leads to now. A mount on a folder makes its path lead to another file.
package struct FileIdentity: Equatable, Sendable {
  private let device: dev_t
  private let inode: ino_t

  /// Looks the path up, following symbolic links. Nil if the path leads to no file that this process may see.
  package init?(of path: String) {
    var status = stat()
    guard unsafe stat(path, &status) == 0 else { return nil }
    device = status.st_dev
    inode = status.st_ino
  }
}
