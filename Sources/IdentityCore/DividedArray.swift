/// An array in pieces, each small: changing one of two copies costs the copy of a piece and not of the whole.
package struct DividedArray<Element: Sendable>: RandomAccessCollection, Sendable {
  /// All of them full but the last.
  private var pieces: [[Element]] = []
  /// How many elements there are.
  package private(set) var count = 0

  /// How many elements a piece has.
  private static var pieceSize: Int { 128 }

  /// An empty one.
  package init() {}

  /// Holds these elements.
  package init(_ elements: some Sequence<Element>) {
    for element in elements { append(element) }
  }

  /// Where the first element is.
  package var startIndex: Int { 0 }
  /// Behind the last element.
  package var endIndex: Int { count }

  /// The element at a place.
  package subscript(place: Int) -> Element {
    get { pieces[place / Self.pieceSize][place % Self.pieceSize] }
    // In place: an element that is a collection itself would be copied otherwise.
    _modify { yield &pieces[place / Self.pieceSize][place % Self.pieceSize] }
  }

  /// Puts an element at the end.
  package mutating func append(_ element: Element) {
    if count == pieces.count * Self.pieceSize {
      pieces.append([])
      // A short array grows by itself.
      if count > 0 { pieces[pieces.count - 1].reserveCapacity(Self.pieceSize) }
    }
    pieces[pieces.count - 1].append(element)
    count += 1
  }
}

extension DividedArray: Equatable where Element: Equatable {
  /// Whether both hold the same elements in the same order.
  package static func == (left: Self, right: Self) -> Bool { left.pieces == right.pieces }
}

extension DividedArray: ExpressibleByArrayLiteral {
  /// Holds the elements of a literal.
  package init(arrayLiteral elements: Element...) { self.init(elements) }
}
