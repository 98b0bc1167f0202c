import CSystemd
import Glibc

/// The connection with the service manager (sd_notify(3), sd_listen_fds(3), sd_watchdog_enabled(3)).
package enum ServiceManager {
  /// Sends `NAME=value` lines to the service manager.
  ///
  /// Each line break within a line becomes a space, so that no value counts as another line.
  ///
  /// - Returns: the error if the lines could not be sent, which is no reason to stop serving. Nil on success, and if
  ///   there is no service manager.
  @discardableResult
  package static func notify(_ lines: [String]) -> SystemdError? {
    let result = send(lines)
    return result < 0 ? SystemdError(call: "sd_notify", code: -result) : nil
  }

  /// Sends lines, and returns the result of sd_notify(3): 0 if there is no service manager.
  static func send(_ lines: [String]) -> Int32 {
    let plain = lines.map { String(decoding: $0.utf8.map { $0 == UInt8(ascii: "\n") ? 0x20 : $0 }, as: UTF8.self) }
    return unsafe sd_notify(0, plain.joined(separator: "\n"))
  }

  /// Returns the descriptors that the service manager has passed to the process, each with its name.
  ///
  /// The descriptors are listening sockets (socket activation) and stored descriptors (``store(_:name:)``). The call
  /// clears the environment variables, so that no child process uses them.
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

  /// Returns whether the descriptor is a Unix stream socket that listens (sd_is_socket_unix(3)).
  package static func isListeningUnixStream(_ number: Int32) -> Bool {
    sd_is_socket_unix(number, Int32(SOCK_STREAM.rawValue), 1, nil, 0) > 0
  }

  /// Returns the interval of the watchdog in microseconds, or nil if the watchdog is off.
  package static func watchdogMicroseconds() -> UInt64? {
    var interval: UInt64 = 0
    return unsafe sd_watchdog_enabled(0, &interval) > 0 ? interval : nil
  }
}
