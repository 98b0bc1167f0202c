/// An element of an ``OrderedTable``, which contains its own key.
protocol OrderedElement: Sendable {
  associatedtype Key: Comparable & Sendable
  /// The key, by which a table orders its elements.
  var key: Key { get }
}

/// A table of elements in ascending order of their keys.
///
/// The elements are in the leaves of a tree of small arrays (a B+ tree). A look-up takes a binary search on each level,
/// and a change of one of two copies copies one array of each level. A list reads the elements block by block, from any
/// key on, so it can pause between two blocks, and never sorts.
struct OrderedTable<Element: OrderedElement>: Sendable {
  typealias Key = Element.Key

  private var root: Node?
  /// The number of elements.
  private(set) var count = 0

  init() {}

  /// Loads elements in ascending order of their keys, each with another key. Takes linear time.
  init(_ elements: [Element]) {
    count = elements.count
    var nodes = stride(from: 0, to: elements.count, by: Node.most).map { index in
      Node(elements: Array(elements[index..<Swift.min(index + Node.most, elements.count)]))
    }
    while nodes.count > 1 {
      nodes = stride(from: 0, to: nodes.count, by: Node.most).map { index in
        Node(children: Array(nodes[index..<Swift.min(index + Node.most, nodes.count)]))
      }
    }
    root = nodes.first
  }

  /// Whether the table has no elements.
  var isEmpty: Bool { count == 0 }

  /// The element with a key.
  subscript(key: Key) -> Element? { root?.element(at: key) }

  /// Stores an element under its key.
  ///
  /// - Returns: the previous element with this key.
  @discardableResult
  mutating func store(_ element: Element) -> Element? { exchange(element, at: element.key) }

  /// Removes and returns the element with a key.
  @discardableResult
  mutating func remove(_ key: Key) -> Element? { exchange(nil, at: key) }

  private mutating func exchange(_ element: Element?, at key: Key) -> Element? {
    guard root != nil else {
      if let element {
        root = Node(elements: [element])
        count = 1
      }
      return nil
    }
    var before: Element?
    if let split = root?.exchange(element, at: key, &before), let left = root {
      // Taken out of the property first, so that no array has two owners.
      root = nil
      root = Node(children: [left, split])
    }
    while let only = root?.onlyChild { root = only }
    if root?.isEmpty == true { root = nil }
    count += (element == nil ? 0 : 1) - (before == nil ? 0 : 1)
    return before
  }

  /// The elements from a key on, as far as they are in one block; empty if there are no more.
  ///
  /// - Parameters:
  ///   - key: the key at which the block begins; nil for the first element.
  ///   - isBehind: whether the element with the key itself is left out.
  func block(from key: Key?, isBehind: Bool = false) -> ArraySlice<Element> {
    guard let root else { return [] }
    guard let key else { return root.firstBlock }
    return root.block(from: key, isBehind)
  }
}

// MARK: - Nodes

extension OrderedTable {
  /// A node of the tree: a leaf with elements, or a branch with children.
  fileprivate struct Node: Sendable {
    /// The lowest key of the node.
    private(set) var lowest: Key
    private var elements: [Element] = []
    private var children: [Node] = []

    /// The maximum number of elements of a leaf, and of children of a branch.
    static var most: Int { 64 }
    /// The number of elements or children below which a node is joined with its neighbour, if both fit into one.
    private static var few: Int { 16 }

    /// Creates a leaf, with at least one element.
    init(elements: [Element]) {
      lowest = elements[0].key
      self.elements = elements
    }

    /// Creates a branch, with at least one child.
    init(children: [Node]) {
      lowest = children[0].lowest
      self.children = children
    }

    var isEmpty: Bool { elements.isEmpty && children.isEmpty }
    private var isLeaf: Bool { children.isEmpty }
    private var size: Int { elements.count + children.count }
    /// The child of a branch with a single one.
    var onlyChild: Node? { children.count == 1 ? children[0] : nil }

    /// Returns the index of the first element whose key is not below a key.
    private func index(of key: Key) -> Int {
      var (low, high) = (0, elements.count)
      while low < high {
        let middle = (low + high) / 2
        if elements[middle].key < key { low = middle + 1 } else { high = middle }
      }
      return low
    }

    /// Returns the index of the child in whose range a key is.
    private func child(of key: Key) -> Int {
      var (low, high) = (1, children.count)
      while low < high {
        let middle = (low + high) / 2
        if key < children[middle].lowest { high = middle } else { low = middle + 1 }
      }
      return low - 1
    }

    func element(at key: Key) -> Element? {
      guard isLeaf else { return children[child(of: key)].element(at: key) }
      let index = index(of: key)
      return index < elements.count && elements[index].key == key ? elements[index] : nil
    }

    var firstBlock: ArraySlice<Element> { isLeaf ? elements[...] : children[0].firstBlock }

    func block(from key: Key, _ isBehind: Bool) -> ArraySlice<Element> {
      if isLeaf {
        var index = index(of: key)
        if isBehind, index < elements.count, elements[index].key == key { index += 1 }
        return elements[index...]
      }
      let index = child(of: key)
      let found = children[index].block(from: key, isBehind)
      // The key may lie behind the last element of the child.
      return found.isEmpty && index + 1 < children.count ? children[index + 1].firstBlock : found
    }

    /// Stores an element, or removes the one with a key if `element` is nil. A node may be empty afterwards.
    ///
    /// - Parameter before: receives the previous element with the key.
    /// - Returns: the upper half of the node if the node was divided.
    mutating func exchange(_ element: Element?, at key: Key, _ before: inout Element?) -> Node? {
      if isLeaf { exchangeHere(element, at: key, &before) } else { exchangeBelow(element, at: key, &before) }
      if isEmpty { return nil }
      defer { lowest = isLeaf ? elements[0].key : children[0].lowest }
      guard size > Self.most else { return nil }
      // Keys often come in ascending order, and then the lower half stays as it is.
      let half = Self.most * 3 / 4
      defer { if isLeaf { elements.removeSubrange(half...) } else { children.removeSubrange(half...) } }
      return isLeaf ? Node(elements: Array(elements[half...])) : Node(children: Array(children[half...]))
    }

    private mutating func exchangeHere(_ element: Element?, at key: Key, _ before: inout Element?) {
      let index = index(of: key)
      if index < elements.count, elements[index].key == key {
        before = elements[index]
        if let element { elements[index] = element } else { elements.remove(at: index) }
      } else if let element {
        elements.insert(element, at: index)
      }
    }

    private mutating func exchangeBelow(_ element: Element?, at key: Key, _ before: inout Element?) {
      let index = child(of: key)
      if let split = children[index].exchange(element, at: key, &before) {
        children.insert(split, at: index + 1)
      } else if children[index].isEmpty {
        children.remove(at: index)
      } else if children[index].size < Self.few, children.count > 1 {
        join(Swift.max(0, index - 1))
      }
    }

    /// Joins a child with the next one, if both fit into one.
    private mutating func join(_ index: Int) {
      guard index + 1 < children.count, children[index].size + children[index + 1].size <= Self.most else { return }
      let next = children.remove(at: index + 1)
      children[index].elements += next.elements
      children[index].children += next.children
    }
  }
}

// MARK: - Sequences

extension OrderedTable: Sequence {
  /// Iterates over the elements in order.
  func makeIterator() -> OrderedIterator { OrderedIterator(self) }

  struct OrderedIterator: IteratorProtocol {
    private let table: OrderedTable
    private var rest: ArraySlice<Element>

    fileprivate init(_ table: OrderedTable) {
      self.table = table
      rest = table.block(from: nil)
    }

    mutating func next() -> Element? {
      let next = rest.popFirst()
      if rest.isEmpty, let next { rest = table.block(from: next.key, isBehind: true) }
      return next
    }
  }
}

extension OrderedTable: Equatable where Element: Equatable {
  /// Returns whether both tables have the same elements, however these are divided.
  static func == (left: Self, right: Self) -> Bool { left.count == right.count && left.elementsEqual(right) }
}
