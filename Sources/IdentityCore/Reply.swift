/// An answer before it is bytes: rows, then the words and attributes of the final `OK`.
package struct Reply: Equatable, Sendable {
  /// One piece of an answer, in the order it is written.
  package enum Part: Equatable, Sendable {
    /// Begins a row: what follows belongs to it.
    case row
    /// Begins the final line.
    case final
    /// A positional word.
    case word(Value)
    /// `name=value`.
    case attribute(String, Value)
  }

  /// A value that a reply can carry.
  package enum Value: Equatable, Sendable {
    case text(Text)
    case string(String)
    case uuid(UUID)
    case time(Timestamp)
    case number(Int64)
    case yesOrNo(Bool)
  }

  /// The pieces in order.
  package private(set) var parts: [Part] = []

  /// The item whose secret stands as `data=` right behind the final `OK`; the attributes follow it.
  package var item: Item?

  /// Starts an empty answer; call ``ok()`` before it is sent.
  package init() {}

  /// The bare `OK`.
  package static var done: Reply {
    var reply = Reply()
    reply.ok()
    return reply
  }

  /// `OK` and one word.
  package static func done(_ value: Value) -> Reply {
    var reply = done
    reply.word(value)
    return reply
  }

  /// Begins a row.
  package mutating func row() { parts.append(.row) }

  /// Begins the final `OK`.
  package mutating func ok() { parts.append(.final) }

  /// Adds a positional word.
  package mutating func word(_ value: Value) { parts.append(.word(value)) }

  /// Adds an attribute; a nil value leaves it out.
  package mutating func attribute(_ name: String, _ value: Value?) {
    if let value { parts.append(.attribute(name, value)) }
  }
}
