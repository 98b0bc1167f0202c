import LinuxSystem

/// The kernel's events for a socket: those that it is asked for, and those that were reported and not dealt with.
struct SocketReadiness {
  /// The conditions that the kernel watches for; nil before the first turn has ended.
  var watched: ReadinessSet.Interest?
  /// Whether there may be input to read. Events are edge-triggered: the kernel does not report this input again.
  private(set) var hasInput = true
  /// Whether a read may return fewer bytes than are there; see ``ReadinessSet/Interest/exceptional``.
  private var stopsEarly = false
  private var descriptors = DescriptorsAlong.possible
  /// The number of reads so far. Counted only in the state `possible`.
  private var reads = 0

  /// The states of the check for descriptors that come with the bytes.
  private enum DescriptorsAlong {
    /// None has come so far.
    case possible
    /// The kernel refuses descriptors from the client, but input sent earlier is not all read yet.
    case refused
    case none
    /// The client has sent descriptors, or the kernel cannot refuse them.
    case always
  }

  /// Whether a read has to look for descriptors that come with the bytes, which costs more.
  var looksForDescriptors: Bool { descriptors != .none }

  /// Takes in that there may be input to read.
  mutating func noteInput() { hasInput = true }

  /// Takes in a condition under which a read may return fewer bytes than are there.
  mutating func noteException() { stopsEarly = true }

  /// Takes in the outcome of a read.
  ///
  /// - Parameters:
  ///   - count: the number of bytes read, 0 at the end of the stream; nil if nothing had arrived.
  ///   - room: the largest number of bytes that the read could return.
  ///   - isCut: whether descriptors came with the bytes, which ends a read.
  mutating func noteRead(_ count: Int?, of room: Int, isCut: Bool) {
    hasInput = if let count { count == room || isCut || (count > 0 && stopsEarly) } else { false }
  }

  /// Takes in whether descriptors came with a read.
  ///
  /// - Parameter most: the number of reads after which the kernel should refuse descriptors, if there was never one.
  /// - Returns: whether the kernel should refuse descriptors from now on.
  mutating func noteDescriptors(_ isCut: Bool, most: Int) -> Bool {
    switch descriptors {
    case .possible where isCut: descriptors = .always
    case .possible:
      reads += 1
      return reads == most
    case .refused where !hasInput: descriptors = .none
    case .refused, .none, .always: break
    }
    return false
  }

  /// Takes in whether the kernel refuses descriptors now.
  mutating func noteRefusal(_ isRefused: Bool) { descriptors = isRefused ? .refused : .always }
}
