import CLinux

/// A watch on the networks of this machine (rtnetlink(7)).
package final class NetworkWatch: Sendable {
  /// The descriptor, which is readable after a change.
  package let descriptor: Descriptor

  /// Starts to watch.
  package init() throws(SystemError) {
    descriptor = Descriptor(adopting: try system("netlink") { clinux_network_socket() })
  }

  /// Returns whether a global address or a default route has appeared since the last call.
  package func hasAppeared() -> Bool { clinux_network_appeared(descriptor.number) != 0 }
}
