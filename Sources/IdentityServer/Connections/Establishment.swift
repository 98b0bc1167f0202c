import LinuxSystem

/// The two steps that make a new connection outlast its first moment, which most connections do not.
struct Establishment: ~Copyable {
  /// A pidfd of the process that connected; nil once the process is watched.
  var process: Descriptor?
  var kept = Kept.no

  init(process: consuming Descriptor?) { self.process = process }

  /// Whether the service manager has a duplicate of the descriptor, so that closing it here does not end the connection.
  var isKept: Bool { kept != .no }

  /// The states of the duplicate and its record.
  enum Kept {
    case no
    /// The saved record has the shape ``Connection/Shape/plain``.
    case plain
    /// The saved record has another shape, or there is no current one.
    case otherwise
  }
}
