/// An array in small chunks. A change of one of two copies duplicates only one chunk instead of the whole array.
package struct DividedArray<Element: Sendable>: RandomAccessCollection, Sendable {
  /// The chunks. All but the last are full.
  private var pieces: [[Element]] = []
  /// The number of elements.
  package private(set) var count = 0

  /// The number of elements in a full chunk.
  private static var pieceSize: Int { 128 }

  package init() {}

  package init(_ elements: some Sequence<Element>) {
    for element in elements { append(element) }
  }

  /// The index of the first element.
  package var startIndex: Int { 0 }
  /// The index after the last element.
  package var endIndex: Int { count }

  /// The element at an index.
  package subscript(index: Int) -> Element {
    get { pieces[index / Self.pieceSize][index % Self.pieceSize] }
    // Modifies in place, because an element that is itself a collection would be copied otherwise.
    _modify { yield &pieces[index / Self.pieceSize][index % Self.pieceSize] }
  }

  /// Appends an element.
  package mutating func append(_ element: Element) {
    if count == pieces.count * Self.pieceSize {
      pieces.append([])
      // The first chunk gets no reserved capacity, so that short arrays stay small.
      if count > 0 { pieces[pieces.count - 1].reserveCapacity(Self.pieceSize) }
    }
    pieces[pieces.count - 1].append(element)
    count += 1
  }
}

extension DividedArray: Equatable where Element: Equatable {
  /// Returns whether both arrays have the same elements in the same order.
  package static func == (left: Self, right: Self) -> Bool { left.pieces == right.pieces }
}

extension DividedArray: ExpressibleByArrayLiteral {
  package init(arrayLiteral elements: Element...) { self.init(elements) }
}
