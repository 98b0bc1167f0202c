import Glibc

/// Bytes that a user hands in: a file of any kind, or standard input.
package struct InputFile: ~Copyable {
  /// What it is called in messages.
  package let name: String
  private let descriptor: Descriptor

  /// Opens a path, through symbolic links; `-` is standard input.
  package init(path: String) throws(SystemError) {
    guard path != "-" else {
      self = try InputFile(descriptor: STDIN_FILENO, named: "standard input")
      return
    }
    let number = try system("open \(path)") { unsafe Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY) }
    self = InputFile(name: path, descriptor: Descriptor(adopting: number))
  }

  private init(name: String, descriptor: consuming Descriptor) {
    self.name = name
    self.descriptor = descriptor
  }

  /// Reads from a descriptor that was handed over with the program, and leaves it open.
  package init(descriptor number: Int32, named name: String) throws(SystemError) {
    self.name = name
    descriptor = Descriptor(adopting: try system("use \(name)") { fcntl(number, F_DUPFD_CLOEXEC, 3) })
  }

  /// Reads until the array is full or there is nothing more.
  ///
  /// - Returns: how many bytes of the array were filled; fewer than it has at the end.
  package func fill(_ bytes: inout [UInt8]) throws(SystemError) -> Int {
    let number = descriptor.number
    var filled = 0
    while filled < bytes.count {
      let result = unsafe bytes.withUnsafeMutableBytes { buffer in
        let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
        return attempt { unsafe Glibc.read(number, rest.baseAddress, rest.count) }
      }
      guard let count = try result.available(as: "read \(name)") else {
        // Somebody else may have set it not to block.
        _ = try TimedWait.wait(for: number, until: nil)
        continue
      }
      if count == 0 { break }
      filled += count
    }
    return filled
  }
}
