import Foundation
import LinuxSystem
import TestSupport

/// A fake journal for one daemon, which sees this socket at the path of journald's socket.
final class PlayedJournal {
  private let folder: URL
  private var socket: Descriptor?
  private var path: String { folder.appending(path: "socket").path }

  init(in folder: URL) throws {
    self.folder = folder.appending(path: "journal")
    try FileManager.default.createDirectory(at: self.folder, withIntermediateDirectories: true)
    try listen()
  }

  /// The wrapper to start the daemon through. The daemon also takes its standard error for the journal.
  var wrapper: [String] {
    let script = """
      mount -t tmpfs none /run && mkdir -p /run/systemd/journal && mount --bind "$0" /run/systemd/journal &&
        JOURNAL_STREAM=$(stat -Lc %d:%i /proc/self/fd/2) && export JOURNAL_STREAM && exec "$@"
      """
    return ["unshare", "--mount", "sh", "-c", script, folder.path]
  }

  /// Opens the socket, which receives all entries sent from now on.
  func listen() throws {
    let descriptor = try boundSocket(SOCK_DGRAM, to: path)
    let number = descriptor.number
    var patience = timeval(tv_sec: 10, tv_usec: 0)
    try system("setsockopt") {
      unsafe setsockopt(number, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    }
    socket = consume descriptor
  }

  /// Closes the socket and keeps its file, so that senders are refused.
  func end() { socket = nil }

  /// Removes the socket.
  func remove() throws { try FileManager.default.removeItem(atPath: path) }

  /// Receives the next entry and returns its fields, parsed from the journal's native protocol.
  func entry() throws -> [(name: String, value: String)] {
    guard let number = socket?.number else { throw Failure("this journal has ended") }
    var bytes = [UInt8](repeating: 0, count: 65_536)
    let count = try system("recv") {
      unsafe bytes.withUnsafeMutableBytes { unsafe recv(number, $0.baseAddress, $0.count, 0) }
    }
    var rest = bytes.prefix(count)
    var fields: [(name: String, value: String)] = []
    while !rest.isEmpty {
      guard let end = rest.firstIndex(of: UInt8(ascii: "\n")) else { throw Failure("a field has no end") }
      let line = rest[..<end]
      rest = rest[(end + 1)...]
      if let sign = line.firstIndex(of: UInt8(ascii: "=")) {
        fields.append(
          (String(decoding: line[..<sign], as: UTF8.self), String(decoding: line[(sign + 1)...], as: UTF8.self)))
      } else {
        let length = rest.prefix(8).reversed().reduce(0) { $0 << 8 + Int($1) }
        let value = rest.dropFirst(8).prefix(length)
        fields.append((String(decoding: line, as: UTF8.self), String(decoding: value, as: UTF8.self)))
        rest = rest.dropFirst(8 + length + 1)
      }
    }
    return fields
  }

  /// Returns the values of one field in the next entries, up to the first value that contains `text`.
  func values(of name: String, upTo text: String) throws -> [String] {
    var values: [String] = []
    while values.last?.contains(text) != true {
      values.append(try entry().first { $0.name == name }?.value ?? "")
    }
    return values
  }
}
