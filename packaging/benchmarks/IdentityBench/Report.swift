import Foundation

/// A row of the table: one figure of both sides.
struct Figure: Encodable {
  /// The unit of a number.
  enum Unit: String, Encodable {
    case microseconds, milliseconds, megabytes
    case perSecond = "per second"

    /// The symbol after a number.
    var symbol: String {
      switch self {
      case .microseconds: "µs"
      case .milliseconds: "ms"
      case .megabytes: "MB"
      case .perSecond: "/s"
      }
    }
  }

  /// The name of the figure.
  let name: String
  /// The unit of both numbers.
  let unit: Unit
  /// The number of the side to compare with.
  let usual: Double
  /// The number of the compared side.
  let other: Double
  /// The factor by which the compared side is worse: more time or memory, or a lower rate.
  let ratio: Double
  /// The highest allowed ratio. Nil if nothing is asserted.
  let limit: Double?
  /// The first and third quartiles of the ratios of single rounds. Nil without rounds.
  let quartiles: [Double]?

  /// Creates a figure.
  init(_ name: String, _ unit: Unit, _ values: Pair<Double>, limit: Double? = nil, rounds: Pair<[Double]>? = nil) {
    self.name = name
    self.unit = unit
    self.limit = limit
    usual = values.usual
    other = values.other
    ratio = Self.ratio(values.usual, values.other, unit)
    quartiles = rounds.map { rounds in
      let ratios = zip(rounds.usual, rounds.other).map { Self.ratio($0, $1, unit) }
      return [ratios.percentile(0.25), ratios.percentile(0.75)]
    }
  }

  private init(_ first: Figure, _ values: Pair<Double>, ratios: [Double]) {
    name = first.name
    unit = first.unit
    limit = first.limit
    usual = values.usual
    other = values.other
    ratio = ratios.median
    quartiles = [ratios.percentile(0.25), ratios.percentile(0.75)]
  }

  /// Returns the median of several runs. The quartiles are those of the runs' ratios.
  static func median(of runs: [Figure]) -> Figure {
    Figure(
      runs[0], Pair(usual: runs.map(\.usual).median, other: runs.map(\.other).median), ratios: runs.map(\.ratio))
  }

  private static func ratio(_ usual: Double, _ other: Double, _ unit: Unit) -> Double {
    unit == .perSecond ? usual / other : other / usual
  }

  /// Whether the ratio is within its limit, which NaN never is.
  var isWithinLimit: Bool { limit.map { ratio <= $0 } ?? true }
}

/// The findings of a benchmark that compares two sides.
struct Report: Findings {
  /// The name of the benchmark.
  let benchmark: String
  /// The headings of the columns for the two sides.
  let columns: [String]
  /// The number of rounds of measurements.
  let rounds: Int
  /// The number of runs of the whole benchmark.
  private(set) var runs = 1
  /// The rows of the table.
  let figures: [Figure]
  /// Whether every asserted limit holds.
  let isWithinLimits: Bool

  /// Creates a report.
  init(benchmark: String, columns: Pair<String>, rounds: Int, figures: [Figure]) {
    self.benchmark = benchmark
    self.columns = [columns.usual, columns.other]
    self.rounds = rounds
    self.figures = figures
    isWithinLimits = figures.allSatisfy(\.isWithinLimit)
  }

  /// Returns nil, because two columns need no drawing.
  func drawing(on machine: Machine) -> Drawing? { nil }

  /// Returns the medians of several runs, row by row.
  static func median(of runs: [Report]) -> Report {
    let figures = runs[0].figures.indices.map { place in Figure.median(of: runs.map { $0.figures[place] }) }
    var report = Report(
      benchmark: runs[0].benchmark, columns: Pair(usual: runs[0].columns[0], other: runs[0].columns[1]),
      rounds: runs[0].rounds, figures: figures)
    report.runs = runs.count
    return report
  }

  /// The report for people: a table, and a verdict on each limit.
  var text: String {
    let head =
      runs == 1
      ? ["\(benchmark), \(rounds) rounds"] + columns + ["ratio", "rounds' quartiles"]
      : ["\(benchmark), medians of \(runs) runs"] + columns + ["ratio", "runs' quartiles"]
    let rows = [head] + figures.map(\.cells)
    return table(rows) + verdict
  }

  private var verdict: String {
    figures.compactMap { figure in
      guard let limit = figure.limit else { return nil }
      let word = figure.isWithinLimit ? "holds" : "FAILED"
      return "\(word): \(figure.name): \(figure.ratio.short) times, at most \(limit.short) is allowed\n"
    }.joined()
  }
}

extension Figure {
  /// The texts in the columns of the row.
  fileprivate var cells: [String] {
    let range = quartiles.map { "\($0[0].short) to \($0[1].short)" } ?? ""
    return [name, "\(usual.short) \(unit.symbol)", "\(other.short) \(unit.symbol)", ratio.short, range]
  }
}

extension Double {
  /// The number with at least three digits, and with all digits before the decimal point.
  var short: String {
    guard isFinite else { return "–" }
    if self >= 100 { return Int(rounded()).grouped }
    return String(format: self >= 10 ? "%.1f" : "%.2f", self)
  }
}

extension Int {
  /// The number with commas between thousands.
  var grouped: String {
    let digits = String(self)
    return String(
      digits.enumerated().flatMap { place, digit in
        place > 0 && (digits.count - place) % 3 == 0 ? [",", digit] : [digit]
      })
  }
}
