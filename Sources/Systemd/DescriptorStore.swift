import CSystemd
import Glibc

/// The service manager keeps descriptors for a service between two of its runs (`FileDescriptorStoreMax=`,
/// systemd.service(5)), and hands them over to the next like listening sockets.
extension ServiceManager {
  /// How many descriptors fit into one message (SCM_MAX_FD, unix(7)).
  private static let most = 253

  /// Whether the service manager keeps descriptors for this service, by `FDSTORE` (systemd.exec(5)).
  ///
  /// - Returns: nil where that is not told: systemd before 254 has the store and not the variable.
  package static var hasDescriptorStore: Bool? {
    guard let socket = variable("NOTIFY_SOCKET"), !socket.isEmpty else { return false }
    return variable("FDSTORE").flatMap { UInt64($0) }.map { $0 > 0 }
  }

  /// Hands descriptors to the service manager to keep, all under one name; they stay open here as well. A message has at
  /// most 253 of them, so more go in several.
  ///
  /// The manager drops one on its own once it is seen to have hung up or failed (sd_notify(3)), and keeps what it has been
  /// given twice once. It says nothing where the store is full or off.
  /// - Parameters:
  ///   - name: at most 255 ASCII characters, no control character and no colon.
  /// - Returns: false where there is no manager, the name is none, or a message could not be sent; some may have been sent.
  @discardableResult
  package static func store(_ descriptors: [Int32], name: String) -> Bool {
    guard isName(name) else { return false }
    for start in stride(from: 0, to: descriptors.count, by: most) {
      let part = Array(descriptors[start..<min(start + most, descriptors.count)])
      let sent = unsafe sd_pid_notify_with_fds(0, 0, "FDSTORE=1\nFDNAME=\(name)", part, UInt32(part.count))
      guard sent > 0 else { return false }
    }
    return true
  }

  /// Has the service manager close what it keeps under a name.
  ///
  /// - Returns: as ``store(_:name:)`` does.
  @discardableResult
  package static func removeStored(name: String) -> Bool {
    isName(name) && send(["FDSTOREREMOVE=1", "FDNAME=\(name)"]) > 0
  }

  /// Waits until the service manager has worked through everything sent before (sd_notify_barrier(3)).
  ///
  /// - Returns: false where that took longer, or there is no manager.
  @discardableResult
  package static func barrier(microseconds: UInt64) -> Bool { sd_notify_barrier(0, microseconds) > 0 }

  /// The rule of sd_notify(3) for FDNAME=. A line break would begin another assignment.
  private static func isName(_ name: String) -> Bool {
    let bytes = name.utf8
    return (1...255).contains(bytes.count) && bytes.allSatisfy { (0x20...0x7E).contains($0) && $0 != UInt8(ascii: ":") }
  }

  private static func variable(_ name: String) -> String? {
    unsafe getenv(name).map { unsafe String(cString: $0) }
  }
}
