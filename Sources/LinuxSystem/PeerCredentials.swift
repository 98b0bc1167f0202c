import CLinux
import Glibc

/// The kernel's word about the process at the other end of a Unix socket: the one that connected, as it was at that moment,
/// or on the side that connected the one that listens, as it was at its listen(2).
package struct PeerCredentials: Equatable, Sendable {
  /// Its number; by now it may name another process, or be 0 where the peer is in a foreign process namespace.
  package let processID: Int32
  /// Its effective user.
  package let userID: UInt32
  /// Its effective group.
  package let groupID: UInt32

  /// SO_PEERCRED (unix(7)).
  package init(of socket: borrowing Descriptor) throws(SystemError) {
    let number = socket.number
    var credentials = clinux_credentials()
    try system("getsockopt SO_PEERCRED") { unsafe clinux_peer_credentials(number, &credentials) }
    processID = credentials.process
    userID = credentials.user
    groupID = credentials.group
  }

  /// SO_PEERGROUPS: the supplementary groups of the process that connected.
  package static func groups(of socket: borrowing Descriptor) throws(SystemError) -> [UInt32] {
    let number = socket.number
    // NGROUPS_MAX is 65,536 (limits.h).
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

  /// A descriptor that stands for the process that connected (SO_PEERPIDFD).
  ///
  /// Before Linux 6.5 the kernel has none for a socket; there it is that of the process which has the number now.
  ///
  /// - Throws: where the process is gone already (ESRCH, EINVAL) or no descriptor is left.
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

  /// A descriptor that stands for the process that has a number now (pidfd_open(2)).
  package static func processDescriptor(number: Int32) throws(SystemError) -> Descriptor {
    Descriptor(adopting: try system("pidfd_open") { clinux_pidfd_open(number) })
  }

  /// Whether the process behind such a descriptor still runs: the descriptor becomes readable when it ends (pidfd_open(2)).
  package static func isAlive(_ number: Int32) throws(SystemError) -> Bool {
    var poll = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
    return try system("poll") { unsafe Glibc.poll(&poll, 1, 0) } == 0
  }
}
