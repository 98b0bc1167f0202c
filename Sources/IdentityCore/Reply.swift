/// An answer before it is encoded: rows, then the words and attributes of the final `OK`.
package struct Reply: Equatable, Sendable {
  /// A part of an answer. The order of the parts is the order in which they are written.
  package enum Part: Equatable, Sendable {
    /// The start of a row. The parts that follow belong to the row.
    case row
    /// The start of the final line.
    case final
    /// A positional word.
    case word(Value)
    /// An attribute: `name=value`.
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

  /// Rows of one kind. Each row is made only when it is written, so a long list is never held as parts.
  package struct Rows: Equatable, Sendable {
    /// The number of rows.
    package let count: Int
    private let describe: @Sendable (Int, inout Reply) -> Void

    /// Creates rows.
    ///
    /// - Parameter describe: adds the words and attributes of one element to a reply.
    init<Element: Sendable>(_ elements: [Element], _ describe: @escaping @Sendable (Element, inout Reply) -> Void) {
      count = elements.count
      self.describe = { describe(elements[$0], &$1) }
    }

    /// Replaces the parts of a reply with one of the rows.
    ///
    /// - Parameter index: the index of the row, from 0 and less than ``count``.
    package func write(_ index: Int, in reply: inout Reply) {
      reply.parts.removeAll(keepingCapacity: true)
      reply.row()
      describe(index, &reply)
    }

    package static func == (left: Self, right: Self) -> Bool { left.parts == right.parts }

    fileprivate var parts: [Part] {
      var row = Reply()
      return (0..<count).flatMap { index in
        write(index, in: &row)
        return row.parts
      }
    }
  }

  /// The rows that precede all ``parts``.
  package private(set) var rows: Rows?

  /// The parts in order, without those of ``rows``.
  package private(set) var parts: [Part] = []

  /// All parts in order, those of ``rows`` first.
  package var allParts: [Part] { (rows?.parts ?? []) + parts }

  /// The item whose secret follows the final `OK` as `data=`, before the attributes.
  package var item: Item?

  /// Creates an empty answer. Call ``ok()`` before the answer is sent.
  package init() {}

  /// Returns a reply with one row per element and the number of rows.
  ///
  /// - Parameter describe: adds the words and attributes of a row. The closure lives until the row is written, so it
  ///   must capture no more than it needs.
  package static func rows<Element: Sendable>(
    _ elements: [Element], _ describe: @escaping @Sendable (Element, inout Reply) -> Void
  ) -> Reply {
    var reply = done(.number(Int64(elements.count)))
    reply.rows = Rows(elements, describe)
    return reply
  }

  /// The bare `OK`.
  package static var done: Reply {
    var reply = Reply()
    reply.parts.reserveCapacity(usualCount)
    reply.ok()
    return reply
  }

  /// The usual number of parts in the answer to a change.
  private static let usualCount = 4

  /// Returns `OK` with one word.
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

  /// Adds an attribute, unless the value is nil.
  package mutating func attribute(_ name: String, _ value: Value?) {
    if let value { parts.append(.attribute(name, value)) }
  }
}
