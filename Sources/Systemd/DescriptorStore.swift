import CSystemd
import Glibc

/// The descriptor store of the service manager (`FileDescriptorStoreMax=`, systemd.service(5)).
///
/// The service manager keeps descriptors between two runs of a service, and passes them to the next
/// run like listening sockets.
extension ServiceManager {
  /// The largest number of descriptors in one message (SCM_MAX_FD, unix(7)).
  private static let most = 253

  /// Whether the service manager keeps descriptors for this service, according to `FDSTORE` (systemd.exec(5)).
  ///
  /// - Returns: nil if unknown, because systemd before 254 has the store but not the variable.
  package static var hasDescriptorStore: Bool? {
    guard let socket = variable("NOTIFY_SOCKET"), !socket.isEmpty else { return false }
    return variable("FDSTORE").flatMap { UInt64($0) }.map { $0 > 0 }
  }

  /// Gives descriptors to the service manager to keep, all under one name. The descriptors stay
  /// open in this process as well.
  ///
  /// A message has at most 253 descriptors, so more descriptors take several messages.
  ///
  /// The manager drops a descriptor by itself after a hang-up or an error (sd_notify(3)), and keeps duplicates only
  /// once. The manager does not report that the store is full or off.
  ///
  /// - Parameters:
  ///   - name: at most 255 ASCII characters, no control character and no colon.
  /// - Returns: false if there is no manager, the name is invalid, or a message could not be sent. Earlier
  ///   messages may have been sent then.
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

  /// Makes the service manager close the descriptors that it keeps under a name.
  ///
  /// - Returns: false in the same cases as ``store(_:name:)``.
  @discardableResult
  package static func removeStored(name: String) -> Bool {
    isName(name) && send(["FDSTOREREMOVE=1", "FDNAME=\(name)"]) > 0
  }

  /// Waits until the service manager has processed all earlier messages (sd_notify_barrier(3)).
  ///
  /// - Returns: false if that took longer, or if there is no manager.
  @discardableResult
  package static func barrier(microseconds: UInt64) -> Bool { sd_notify_barrier(0, microseconds) > 0 }

  /// Returns whether sd_notify(3) allows the name for FDNAME=. A line break would begin another assignment.
  private static func isName(_ name: String) -> Bool {
    let bytes = name.utf8
    return (1...255).contains(bytes.count) && bytes.allSatisfy { (0x20...0x7E).contains($0) && $0 != UInt8(ascii: ":") }
  }

  private static func variable(_ name: String) -> String? {
    unsafe getenv(name).map { unsafe String(cString: $0) }
  }
}
