import CLinux
import Glibc

/// The credentials of the process at the other end of a Unix socket, as the kernel reports them.
///
/// For an accepted connection, the process is the one that connected, at the time of its connect(2). For the connecting
/// side, the process is the one that listens, at the time of its listen(2).
package struct PeerCredentials: Equatable, Sendable {
  /// The process ID. Another process may have the ID by now. 0 if the peer is in a foreign PID namespace.
  package let processID: Int32
  /// The effective user ID.
  package let userID: UInt32
  /// The effective group ID.
  package let groupID: UInt32

  /// Reads the credentials of a socket's peer (SO_PEERCRED, unix(7)).
  package init(of socket: borrowing Descriptor) throws(SystemError) {
    let number = socket.number
    var credentials = clinux_credentials()
    try system("getsockopt SO_PEERCRED") { unsafe clinux_peer_credentials(number, &credentials) }
    processID = credentials.process
    userID = credentials.user
    groupID = credentials.group
  }

  /// Returns the supplementary groups of the process that connected (SO_PEERGROUPS).
  package static func groups(of socket: borrowing Descriptor) throws(SystemError) -> [UInt32] {
    let number = socket.number
    // The second size is NGROUPS_MAX (limits.h).
    for room in [64, 65_536] {
      var groups = [UInt32](repeating: 0, count: room)
      do {
        let count = try system("getsockopt SO_PEERGROUPS") {
          unsafe groups.withUnsafeMutableBufferPointer {
            unsafe clinux_peer_groups(number, $0.baseAddress, Int32($0.count))
          }
        }
        return Array(groups.prefix(Int(count)))
      } catch  where error.code == ERANGE && room == 64 {
        continue
      }
    }
    return []
  }

  /// Returns a pidfd of the process that connected (SO_PEERPIDFD).
  ///
  /// Before Linux 6.5 the kernel has no pidfd for a socket. There the result is a pidfd of the process
  /// that has the ID `number` now.
  ///
  /// - Throws: ESRCH or EINVAL if the process is already gone; the kernel's error if there is no free descriptor.
  package static func processDescriptor(of socket: borrowing Descriptor, number: Int32) throws(SystemError)
    -> Descriptor
  {
    let socket = socket.number
    do {
      return Descriptor(adopting: try system("getsockopt SO_PEERPIDFD") { clinux_peer_pidfd(socket) })
    } catch  where error.code == ENOPROTOOPT {
      return try processDescriptor(number: number)
    }
  }

  /// Returns a pidfd of the process that has an ID now (pidfd_open(2)).
  package static func processDescriptor(number: Int32) throws(SystemError) -> Descriptor {
    Descriptor(adopting: try system("pidfd_open") { clinux_pidfd_open(number) })
  }

  /// Returns whether the process behind a pidfd is still running. A pidfd becomes readable when its
  /// process ends (pidfd_open(2)).
  ///
  /// - Parameter number: the pidfd.
  package static func isAlive(_ number: Int32) throws(SystemError) -> Bool {
    var poll = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
    return try system("poll") { unsafe Glibc.poll(&poll, 1, 0) } == 0
  }
}
