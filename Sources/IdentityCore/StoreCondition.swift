/// The operations that the store can perform now.
package enum StoreCondition: Equatable, Sendable {
  /// A condition without its reason. The raw values appear in `status` and in `stats`.
  package enum Kind: String, CaseIterable, Sendable {
    case ok
    /// The items of a large store are not proven yet. Requests that need them wait, and so do all changes.
    case checking
    case noSpace = "no-space"
    case readOnly = "read-only"
    case readError = "read-error"
    case damaged
  }

  /// Reads and changes are possible.
  case writable
  /// The disk is full. Reads continue, and changes resume once there is room.
  case full
  /// A commit failed. Reads continue, and no change is acknowledged before the store has been rewritten.
  case unwritable(String)
  /// Part of the content is not as this daemon wrote it. Proven records are served, and none is changed or created.
  case damaged(String)
  /// The disk could not be read. No record is served, changed or created.
  case unreadable(String)

  /// The answer to a change; nil if changes are possible.
  package var refusal: Refusal? {
    switch self {
    case .writable: nil
    case .full: .noSpace
    case .unwritable(let why): .readOnly("the store cannot be written now: \(why)")
    case .damaged(let why): .broken("the store is damaged: \(why)")
    case .unreadable(let why): .unavailable("the store could not be read: \(why)")
    }
  }

  /// The condition without its reason.
  package var kind: Kind {
    switch self {
    case .writable: .ok
    case .full: .noSpace
    case .unwritable: .readOnly
    case .damaged: .damaged
    case .unreadable: .readError
    }
  }

  /// The value of the `store` row in `status`.
  package var name: String { kind.rawValue }
}

extension Refusal {
  /// Returns the answer to a change that may be on disk although its commit failed.
  package static func uncertain(_ condition: StoreCondition) -> Refusal {
    let why =
      switch condition {
      case .unwritable(let why), .damaged(let why), .unreadable(let why): why
      case .writable, .full: condition.name
      }
    return .unknown(
      "the disk failed during the commit (\(why)), so the change may exist after a restart; read the value before you repeat the request"
    )
  }
}
