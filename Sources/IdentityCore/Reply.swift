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

  /// Rows of one kind, each made when it is written: a long list is never held as parts.
  package struct Rows: Equatable, Sendable {
    /// How many there are.
    package let count: Int
    private let describe: @Sendable (Int, inout Reply) -> Void

    /// - Parameter describe: adds the words and attributes of one of the elements.
    init<Element: Sendable>(_ elements: [Element], _ describe: @escaping @Sendable (Element, inout Reply) -> Void) {
      count = elements.count
      self.describe = { describe(elements[$0], &$1) }
    }

    /// Puts one of the rows in the place of what is in a reply.
    ///
    /// - Parameter index: counted from 0, and less than ``count``.
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

  /// Rows that stand before all ``parts``.
  package private(set) var rows: Rows?

  /// The pieces in order, without those of ``rows``.
  package private(set) var parts: [Part] = []

  /// The pieces in order, those of ``rows`` first.
  package var allParts: [Part] { (rows?.parts ?? []) + parts }

  /// The item whose secret stands as `data=` right behind the final `OK`; the attributes follow it.
  package var item: Item?

  /// Starts an empty answer; call ``ok()`` before it is sent.
  package init() {}

  /// Rows of one kind, and their number.
  ///
  /// - Parameter describe: adds the words and attributes of a row. It is called when the row is written, so it must hold
  ///   no more than it needs.
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

  /// Of the parts of an answer to a change.
  private static let usualCount = 4

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
