/// What the store can do now.
package enum StoreCondition: Equatable, Sendable {
  /// Everything.
  case writable
  /// The disk is full: reads go on, and changes again once there is room.
  case full
  /// A commit failed: reads go on, and nothing is acknowledged until the store was written anew.
  case unwritable(String)
  /// Something in it is not what this daemon wrote: what is proven is served, and nothing is changed or made up.
  case damaged(String)
  /// The disk did not let it be read: nothing of it is served, and nothing is changed or made up.
  case unreadable(String)

  /// The answer to a change; nil where changes are possible.
  package var refusal: Refusal? {
    switch self {
    case .writable: nil
    case .full: .noSpace
    case .unwritable(let why): .readOnly("the store cannot be written now: \(why)")
    case .damaged(let why): .broken("the store is damaged: \(why)")
    case .unreadable(let why): .unavailable("the store could not be read: \(why)")
    }
  }

  /// One word for `status`.
  package var name: String {
    switch self {
    case .writable: "ok"
    case .full: "no-space"
    case .unwritable: "read-only"
    case .damaged: "damaged"
    case .unreadable: "read-error"
    }
  }
}

extension Refusal {
  /// The answer to a change that may have come to the disk although its commit failed.
  package static func uncertain(_ condition: StoreCondition) -> Refusal {
    let why =
      switch condition {
      case .unwritable(let why), .damaged(let why), .unreadable(let why): why
      case .writable, .full: condition.name
      }
    return .unknown(
      "the disk failed at the end of the change (\(why)): a restart may find it done; ask for the value before you repeat it"
    )
  }
}
