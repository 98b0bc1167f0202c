/// What belongs to either side of a comparison.
struct Pair<Value> {
  /// What is compared with: few items, no neighbour.
  var usual: Value
  /// What is compared: many items, a hostile neighbour.
  var other: Value

  /// Turns both into something else.
  func map<Other>(_ transform: (Value) throws -> Other) rethrows -> Pair<Other> {
    Pair<Other>(usual: try transform(usual), other: try transform(other))
  }
}

extension [Double] {
  /// The one in the middle, or the mean of the two that are; 0 where there is none.
  var median: Double {
    let ordered = sorted()
    guard !ordered.isEmpty else { return 0 }
    let middle = ordered.count / 2
    return ordered.count % 2 == 1 ? ordered[middle] : (ordered[middle - 1] + ordered[middle]) / 2
  }

  /// The smallest that a given part of all does not exceed (nearest rank); 0 where there is none.
  func percentile(_ part: Double) -> Double {
    let ordered = sorted()
    guard !ordered.isEmpty else { return 0 }
    return ordered[Swift.min(ordered.count - 1, Swift.max(0, Int((part * Double(ordered.count)).rounded(.up)) - 1))]
  }
}
