/// A histogram with fixed buckets, which is cheap to update and enough for a median and a percentile.
///
/// The bounds are 1, 2 and 5 times the powers of ten. Because the bounds are fixed, any two histograms can
/// be compared and added up.
package struct Histogram: Equatable, Sendable {
  /// The kind of values that a histogram counts.
  package enum Scale: Equatable, Sendable {
    /// Durations, counted in microseconds and shown in seconds.
    case seconds
    /// Numbers of things.
    case amounts

    /// The upper bounds of the buckets, ascending, in the unit of ``Histogram/add(_:)``: 1 µs to 10 s, or 1 to 1,000.
    package var bounds: [UInt64] {
      let powers: [UInt64] =
        switch self {
        case .seconds: [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000]
        case .amounts: [1, 10, 100]
        }
      return powers.flatMap { [$0, 2 * $0, 5 * $0] } + [10 * (powers.last ?? 1)]
    }

    /// Returns the text of a number that is given in the unit of ``Histogram/add(_:)``.
    ///
    /// As OpenMetrics requires for the bounds of buckets, the text is the shortest decimal for the number,
    /// with `.0` for a whole number.
    package func shown(_ value: UInt64) -> String {
      switch self {
      case .seconds: "\(Double(value) / 1_000_000)"
      case .amounts: "\(Double(value))"
      }
    }
  }

  /// The kind of values that the histogram counts.
  package let scale: Scale
  private let bounds: [UInt64]
  /// The number of values in each bucket, not cumulative. The last bucket counts the values above all bounds.
  private var counts: [UInt64]
  /// The sum of all values.
  package private(set) var sum: UInt64 = 0
  /// The number of values.
  package private(set) var count: UInt64 = 0

  package init(_ scale: Scale) {
    self.scale = scale
    bounds = scale.bounds
    counts = [UInt64](repeating: 0, count: bounds.count + 1)
  }

  /// Counts a value: a duration in microseconds, or an amount.
  package mutating func add(_ value: UInt64) {
    counts[bounds.firstIndex { value <= $0 } ?? bounds.count] += 1
    sum &+= value
    count += 1
  }

  /// The number of values at or below each bound.
  package var cumulative: [(bound: String, count: UInt64)] {
    var below: UInt64 = 0
    return zip(bounds, counts).map { bound, count in
      below += count
      return (scale.shown(bound), below)
    }
  }
}
