import CSystemd
import Glibc

/// What the service manager is told, and what it hands over (sd_notify(3), sd_listen_fds(3), sd_watchdog_enabled(3)).
package enum ServiceManager {
  /// Sends `NAME=value` lines to the service manager. A line's end within one becomes a space, so that no value is taken
  /// for another line.
  ///
  /// - Returns: why it could not be sent, which is no reason to stop serving; nil where it was, and where there is nobody to
  ///   tell.
  @discardableResult
  package static func notify(_ lines: [String]) -> SystemdError? {
    let result = send(lines)
    return result < 0 ? SystemdError(call: "sd_notify", code: -result) : nil
  }

  /// Sends it, and passes on what sd_notify(3) says: 0 where there is nobody to tell.
  static func send(_ lines: [String]) -> Int32 {
    let plain = lines.map { String(decoding: $0.utf8.map { $0 == UInt8(ascii: "\n") ? 0x20 : $0 }, as: UTF8.self) }
    return unsafe sd_notify(0, plain.joined(separator: "\n"))
  }

  /// The descriptors that were handed over, each with its name: listening sockets (socket activation), and what was stored
  /// before (``store(_:name:)``).
  ///
  /// The environment variables are cleared, so that no child takes them for its own.
  package static func listeningDescriptors() throws(SystemdError) -> [(number: Int32, name: String)] {
    var names: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
    let count = try checked("sd_listen_fds_with_names", unsafe sd_listen_fds_with_names(1, &names))
    defer { unsafe free(names) }
    return (0..<Int(count)).map { index in
      let name = unsafe names?[index]
      defer { unsafe free(name) }
      return unsafe (SD_LISTEN_FDS_START + Int32(index), name.map { unsafe String(cString: $0) } ?? "")
    }
  }

  /// Whether the descriptor is a Unix stream socket that listens (sd_is_socket_unix(3)).
  package static func isListeningUnixStream(_ number: Int32) -> Bool {
    sd_is_socket_unix(number, Int32(SOCK_STREAM.rawValue), 1, nil, 0) > 0
  }

  /// How often the watchdog wants to hear of this process, in microseconds; nil where it is off.
  package static func watchdogMicroseconds() -> UInt64? {
    var interval: UInt64 = 0
    return unsafe sd_watchdog_enabled(0, &interval) > 0 ? interval : nil
  }
}
