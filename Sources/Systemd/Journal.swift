import CSystemd
import Glibc

/// The system's journal (sd_journal_sendv(3)).
package enum Journal {
  private static let socket = "/run/systemd/journal/socket"

  /// Whether standard error goes to the journal, so that native entries can replace
  /// it (`JOURNAL_STREAM`, systemd.exec(5)).
  package static var isStandardError: Bool {
    guard let variable = unsafe getenv("JOURNAL_STREAM") else { return false }
    var status = stat()
    guard unsafe fstat(2, &status) == 0 else { return false }
    return unsafe String(cString: variable) == "\(status.st_dev):\(status.st_ino)"
  }

  /// Sends one entry, and waits if the journal is slow.
  ///
  /// - Parameter fields: names in capitals with their values. A value may contain any bytes.
  package static func send(_ fields: [(name: String, value: [UInt8])]) throws(SystemdError) {
    // sd_journal_sendv(3) reports success if there is no journal.
    try checked("access \(socket)", unsafe access(socket, F_OK) == 0 ? 0 : -errno)
    let entries = fields.map { Array($0.name.utf8) + [UInt8(ascii: "=")] + $0.value }
    let room = entries.reduce(0) { $0 + $1.count }
    let code = unsafe withUnsafeTemporaryAllocation(byteCount: max(room, 1), alignment: 1) { buffer in
      var vectors: [iovec] = unsafe []
      var offset = 0
      for entry in entries {
        let target = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[offset..<(offset + entry.count)])
        unsafe target.copyBytes(from: entry)
        unsafe vectors.append(iovec(iov_base: target.baseAddress, iov_len: entry.count))
        offset += entry.count
      }
      return unsafe sd_journal_sendv(vectors, Int32(vectors.count))
    }
    try checked("sd_journal_sendv", code)
  }
}
