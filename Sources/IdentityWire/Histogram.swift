/// How often values came that are at most this and that: cheap to count, and enough for a median and a percentile.
///
/// The bounds are fixed, 1, 2 and 5 times the powers of ten, so that any two of them can be compared and added up.
package struct Histogram: Equatable, Sendable {
  /// What is counted.
  package enum Scale: Equatable, Sendable {
    /// Times, told in microseconds and shown in seconds.
    case seconds
    /// How many of something.
    case amounts

    /// The upper bounds of the buckets, ascending, in the unit that ``Histogram/add(_:)`` takes: from 1 µs to 10 s, or
    /// from 1 to 1,000.
    package var bounds: [UInt64] {
      let powers: [UInt64] =
        switch self {
        case .seconds: [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000]
        case .amounts: [1, 10, 100]
        }
      return powers.flatMap { [$0, 2 * $0, 5 * $0] } + [10 * (powers.last ?? 1)]
    }

    /// How a number in the unit of ``Histogram/add(_:)`` is shown: as OpenMetrics asks for the bounds of buckets, the shortest
    /// decimal that is that number, with `.0` where it is whole.
    package func shown(_ value: UInt64) -> String {
      switch self {
      case .seconds: "\(Double(value) / 1_000_000)"
      case .amounts: "\(Double(value))"
      }
    }
  }

  /// What is counted.
  package let scale: Scale
  private let bounds: [UInt64]
  /// How many values came for each bound that are above the one before; the last is for those above all.
  private var counts: [UInt64]
  /// The sum of all values.
  package private(set) var sum: UInt64 = 0
  /// How many values came.
  package private(set) var count: UInt64 = 0

  /// Nothing yet.
  package init(_ scale: Scale) {
    self.scale = scale
    bounds = scale.bounds
    counts = [UInt64](repeating: 0, count: bounds.count + 1)
  }

  /// Counts a value: microseconds, or how many.
  package mutating func add(_ value: UInt64) {
    counts[bounds.firstIndex { value <= $0 } ?? bounds.count] += 1
    sum &+= value
    count += 1
  }

  /// For each bound how many values are at most that.
  package var cumulative: [(bound: String, count: UInt64)] {
    var below: UInt64 = 0
    return zip(bounds, counts).map { bound, count in
      below += count
      return (scale.shown(bound), below)
    }
  }
}
