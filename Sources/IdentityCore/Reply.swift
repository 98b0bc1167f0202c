/// An answer before it is encoded: rows, then the words and attributes of the final `OK`.
package struct Reply: Sendable {
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
    /// `data=` with the secret of the next of ``secrets``.
    case secret
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

  /// Rows that are looked for and made only when they are written, so a long list is never held as parts.
  private struct Rows: Sendable {
    var source: any RowSource
    /// The number of rows made so far.
    var count = 0
    /// The maximum number of rows.
    let limit: Int
    /// The refusal in place of an answer without rows; nil if no row is an answer, too.
    let refusalIfEmpty: Refusal?
    /// Whether the number of rows is the first word of the final line.
    let isCounted: Bool
  }

  /// The rows that precede all ``parts``; nil if there are none, or once all are made.
  private var rows: Rows?

  /// The parts in order, without those of the rows.
  package private(set) var parts: [Part] = []

  /// Whether rows are still to be made.
  package var hasRows: Bool { rows != nil }

  /// The items whose secrets are in the answer, in the order of the rows and parts.
  package private(set) var secrets: [Item] = []

  /// The statement to sign. Nothing but the proof is then the answer.
  package internal(set) var proof: ProofStatement?

  /// Creates an empty answer. Call ``ok()`` before the answer is sent.
  package init() {}

  /// Returns a reply with one row per element and the number of rows.
  ///
  /// - Parameter describe: adds the words and attributes of a row. The closure lives until the row is written, so it
  ///   must capture no more than it needs.
  package static func rows<Element: Sendable>(
    _ elements: [Element], _ describe: @escaping @Sendable (Element, inout Reply) -> Void
  ) -> Reply {
    rows(of: Search(ArrayBlocks(elements)) { _ in true }, describe)
  }

  /// Returns a reply with one row for each element that a search finds, and the number of rows.
  ///
  /// - Parameters:
  ///   - limit: the maximum number of rows.
  ///   - refusal: the refusal if the search finds nothing; nil if that is an answer.
  ///   - describe: adds the words and attributes of a row, as above.
  static func rows<Source: BlockSource>(
    of search: Search<Source>, limit: Int = .max, orRefuse refusal: Refusal? = nil,
    _ describe: @escaping @Sendable (Source.Element, inout Reply) -> Void
  ) -> Reply {
    var reply = done
    reply.rows = Rows(
      source: FoundRows(search) { element, reply in
        reply.row()
        describe(element, &reply)
      }, limit: limit, refusalIfEmpty: refusal, isCounted: true)
    return reply
  }

  /// Returns a reply with one row for each item, and the number of rows.
  ///
  /// - Parameters:
  ///   - hasSecret: returns whether the row of an item has its secret.
  ///   - describe: adds the attributes of a row, behind the secret.
  static func rows(
    of items: [Item], hasSecret: (Item) -> Bool, _ describe: @escaping @Sendable (Item, Bool, inout Reply) -> Void
  ) -> Reply {
    let marked = items.map { (item: $0, hasSecret: hasSecret($0)) }
    var reply = rows(marked) { row, reply in
      if row.hasSecret { reply.secret(of: row.item) }
      describe(row.item, row.hasSecret, &reply)
    }
    reply.secrets = marked.filter(\.hasSecret).map(\.item)
    return reply
  }

  /// Returns a reply with the rows of several sources and their number.
  static func countedRows(of sources: [any RowSource]) -> Reply {
    var reply = done
    reply.rows = Rows(source: JoinedRows(sources), limit: .max, refusalIfEmpty: nil, isCounted: true)
    return reply
  }

  /// Returns a reply with rows of several kinds. The caller adds the final line.
  static func rows(of sources: [any RowSource]) -> Reply {
    var reply = Reply()
    reply.rows = Rows(source: JoinedRows(sources), limit: .max, refusalIfEmpty: nil, isCounted: false)
    return reply
  }

  /// Makes the next row. After the last one, only ``parts`` are left to be written.
  ///
  /// - Parameters:
  ///   - row: the reply whose parts become those of the row.
  ///   - effort: the number of elements that may be examined for it. The call reduces the number.
  /// - Throws: the refusal in place of an answer without rows.
  package mutating func nextRow(in row: inout Reply, effort: inout Int) throws(Refusal) -> SearchStep<Void> {
    row.parts.removeAll(keepingCapacity: true)
    row.secrets = []
    guard var rows = self.rows.take() else { return .ended }
    let step = rows.count < rows.limit ? rows.source.next(in: &row, effort: &effort) : .ended
    switch step {
    case .found: rows.count += 1
    case .paused: break
    case .ended:
      if rows.count == 0, let refusal = rows.refusalIfEmpty { throw refusal }
      if rows.isCounted { parts.insert(.word(.number(Int64(rows.count))), at: 1) }
      return .ended
    }
    self.rows = rows
    return step
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

  /// Adds the secret of an item as `data=`. The server fills it in when it encodes the answer.
  package mutating func secret(of item: Item) {
    secrets.append(item)
    parts.append(.secret)
  }

  /// Adds an attribute, unless the value is nil.
  package mutating func attribute(_ name: String, _ value: Value?) {
    if let value { parts.append(.attribute(name, value)) }
  }
}
