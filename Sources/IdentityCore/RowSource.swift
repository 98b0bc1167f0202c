/// The elements of a list, in blocks of bounded size, so that the list can pause between them.
protocol BlockSource<Element>: Sendable {
  associatedtype Element: Sendable
  /// Returns the next elements; empty if there are no more.
  mutating func next() -> ArraySlice<Element>
}

/// The outcome of one step of a list or of a search.
package enum SearchStep<Element> {
  /// An element was found.
  case found(Element)
  /// The permitted number of elements was examined, and more follow.
  case paused
  /// There are no more elements.
  case ended
}

/// A search for the elements of a source that meet a condition. It can pause after any element.
struct Search<Source: BlockSource>: Sendable {
  typealias Element = Source.Element

  private var source: Source
  private var block: ArraySlice<Element> = []
  private let isMatch: @Sendable (Element) -> Bool
  /// The last element that was examined.
  private(set) var last: Element?

  /// Creates a search.
  ///
  /// - Parameter isMatch: returns whether an element is meant. The closure lives until the search ends, so it must
  ///   capture no more than it needs.
  init(_ source: Source, where isMatch: @escaping @Sendable (Element) -> Bool) {
    self.source = source
    self.isMatch = isMatch
  }

  /// Looks for the next element.
  ///
  /// - Parameter effort: the number of elements that may be examined. The call reduces the number.
  mutating func step(_ effort: inout Int) -> SearchStep<Element> {
    while effort > 0 {
      guard let element = block.popFirst() else {
        block = source.next()
        if block.isEmpty { return .ended }
        continue
      }
      effort -= 1
      last = element
      if isMatch(element) { return .found(element) }
    }
    return .paused
  }
}

/// The rows of a list, each made when it is written.
protocol RowSource: Sendable {
  /// Looks for the element of the next row, and adds its words and attributes to a reply.
  ///
  /// - Parameter effort: the number of elements that may be examined. The call reduces the number.
  mutating func next(in reply: inout Reply, effort: inout Int) -> SearchStep<Void>
}

/// A row for each element that a search finds.
struct FoundRows<Source: BlockSource>: RowSource {
  private var search: Search<Source>
  private let describe: @Sendable (Source.Element, inout Reply) -> Void

  /// Creates rows.
  ///
  /// - Parameter describe: begins the row of an element, and adds its words and attributes.
  init(_ search: Search<Source>, _ describe: @escaping @Sendable (Source.Element, inout Reply) -> Void) {
    self.search = search
    self.describe = describe
  }

  mutating func next(in reply: inout Reply, effort: inout Int) -> SearchStep<Void> {
    switch search.step(&effort) {
    case .found(let element):
      describe(element, &reply)
      return .found(())
    case .paused: return .paused
    case .ended: return .ended
    }
  }
}

/// The rows of several sources, one source after the other.
struct JoinedRows: RowSource {
  private var sources: ArraySlice<any RowSource>

  init(_ sources: [any RowSource]) { self.sources = sources[...] }

  mutating func next(in reply: inout Reply, effort: inout Int) -> SearchStep<Void> {
    while var source = sources.popFirst() {
      let step = source.next(in: &reply, effort: &effort)
      if case .ended = step { continue }
      sources.insert(source, at: sources.startIndex)
      return step
    }
    return .ended
  }
}

// MARK: - Sources

/// The elements of an array, which is in memory in any case.
struct ArrayBlocks<Element: Sendable>: BlockSource {
  private var elements: ArraySlice<Element>

  init(_ elements: [Element]) { self.elements = elements[...] }

  mutating func next() -> ArraySlice<Element> {
    defer { elements = [] }
    return elements
  }
}

/// The elements of a table from a key on, as long as they are in a range.
struct OrderedBlocks<Element: OrderedElement>: BlockSource {
  private let table: OrderedTable<Element>
  private var position: (key: Element.Key?, isBehind: Bool)
  private let isInRange: @Sendable (Element.Key) -> Bool

  /// Creates a source of elements.
  ///
  /// - Parameters:
  ///   - key: the key at which the elements begin; nil for the first element.
  ///   - isBehind: whether the element with the key itself is left out.
  ///   - isInRange: returns whether a key from `key` on is in the range.
  init(
    _ table: OrderedTable<Element>, from key: Element.Key? = nil, isBehind: Bool = false,
    while isInRange: @escaping @Sendable (Element.Key) -> Bool = { _ in true }
  ) {
    self.table = table
    position = (key, isBehind)
    self.isInRange = isInRange
  }

  /// Creates a source of the elements with these keys, both included. Without `first`, begins with the first element.
  init(_ table: OrderedTable<Element>, from first: Element.Key? = nil, through last: Element.Key) {
    self.init(table, from: first) { $0 <= last }
  }

  mutating func next() -> ArraySlice<Element> {
    let block = table.block(from: position.key, isBehind: position.isBehind)
    guard let last = block.last else { return [] }
    position = (last.key, true)
    if isInRange(last.key) { return block }
    return block.prefix { isInRange($0.key) }
  }
}

/// Several sources, one after the other.
struct JoinedBlocks<Source: BlockSource>: BlockSource {
  private var sources: ArraySlice<Source>

  init(_ sources: [Source]) { self.sources = sources[...] }

  mutating func next() -> ArraySlice<Source.Element> {
    while let first = sources.indices.first {
      let block = sources[first].next()
      if !block.isEmpty { return block }
      sources.removeFirst()
    }
    return []
  }
}
