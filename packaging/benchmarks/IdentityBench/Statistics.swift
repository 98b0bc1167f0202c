/// The values of the two sides of a comparison.
struct Pair<Value> {
  /// The value of the side to compare with: few items, no neighbour.
  var usual: Value
  /// The value of the compared side: many items, a hostile neighbour.
  var other: Value

  /// Transforms both values.
  func map<Other>(_ transform: (Value) throws -> Other) rethrows -> Pair<Other> {
    Pair<Other>(usual: try transform(usual), other: try transform(other))
  }
}

extension [Double] {
  /// The middle value, or the mean of the two middle values. 0 for an empty array.
  var median: Double {
    let ordered = sorted()
    guard !ordered.isEmpty else { return 0 }
    let middle = ordered.count / 2
    return ordered.count % 2 == 1 ? ordered[middle] : (ordered[middle - 1] + ordered[middle]) / 2
  }

  /// Returns the smallest value that a given part of all values does not exceed (nearest rank). 0 for an empty array.
  func percentile(_ part: Double) -> Double {
    let ordered = sorted()
    guard !ordered.isEmpty else { return 0 }
    return ordered[Swift.min(ordered.count - 1, Swift.max(0, Int((part * Double(ordered.count)).rounded(.up)) - 1))]
  }
}
