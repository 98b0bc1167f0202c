import Glibc

/// Input from a user: a file of any type, or standard input.
package struct InputFile: ~Copyable {
  /// The name of the input in messages.
  package let name: String
  private let descriptor: Descriptor

  /// Opens a path and follows symbolic links. `-` is standard input.
  package init(path: String) throws(SystemError) {
    guard path != "-" else {
      self = try InputFile(descriptor: STDIN_FILENO, named: "standard input")
      return
    }
    let number = try system("open \(path)") { unsafe Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY) }
    self = InputFile(name: path, descriptor: Descriptor(adopting: number))
  }

  /// Checks whether this user may read a path, without opening it. `-` is standard input.
  ///
  /// - Throws: The error of faccessat(2).
  package static func requireReadable(path: String) throws(SystemError) {
    guard path != "-" else { return }
    try system("open \(path)") { unsafe faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) }
  }

  private init(name: String, descriptor: consuming Descriptor) {
    self.name = name
    self.descriptor = descriptor
  }

  /// Reads from a descriptor that the program inherited. The descriptor stays open.
  package init(descriptor number: Int32, named name: String) throws(SystemError) {
    self.name = name
    descriptor = Descriptor(adopting: try system("use \(name)") { fcntl(number, F_DUPFD_CLOEXEC, 3) })
  }

  /// Reads until the array is full or the input ends.
  ///
  /// - Returns: the number of bytes read. Fewer than the array has room for only at the end of the input.
  package func fill(_ bytes: inout [UInt8]) throws(SystemError) -> Int {
    let number = descriptor.number
    var filled = 0
    while filled < bytes.count {
      let result = unsafe bytes.withUnsafeMutableBytes { buffer in
        let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
        return attempt { unsafe Glibc.read(number, rest.baseAddress, rest.count) }
      }
      guard let count = try result.available(as: "read \(name)") else {
        // Another process may have set the input to be non-blocking.
        _ = try TimedWait.wait(for: number, until: nil)
        continue
      }
      if count == 0 { break }
      filled += count
    }
    return filled
  }
}
