import CLinux
import Glibc

/// A reserve of random bytes from the kernel (getrandom(2)), fetched a page at a time.
///
/// A fetch waits until the kernel's generator is initialized, and never accepts weaker bytes instead.
package struct Entropy: Sendable {
  /// Empty until the first use.
  private var bytes: [UInt8] = []
  private var used = 0

  package init() {}

  /// Returns 64 fresh random bits. No bits are returned twice.
  package mutating func next() throws(SystemError) -> UInt64 {
    if used == bytes.count {
      if bytes.isEmpty {
        bytes = [UInt8](repeating: 0, count: 4_096)
        // If the fetch below fails, no byte of the new array may be used.
        used = bytes.count
      }
      try Self.fill(&bytes)
      used = 0
    }
    var bits: UInt64 = 0
    for index in used..<(used + 8) {
      bits = bits << 8 | UInt64(bytes[index])
      bytes[index] = 0
    }
    used += 8
    return bits
  }

  /// Forgets the reserve: another machine that goes on from the same snapshot has a copy of it.
  package mutating func forgetReserve() { self = Entropy() }

  /// Fills the array with random bytes.
  package static func fill(_ bytes: inout [UInt8]) throws(SystemError) {
    var filled = 0
    while filled < bytes.count {
      let count = try system("getrandom") {
        unsafe bytes.withUnsafeMutableBytes { buffer in
          let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
          return unsafe clinux_random(rest.baseAddress, rest.count)
        }
      }
      filled += count
    }
  }
}
