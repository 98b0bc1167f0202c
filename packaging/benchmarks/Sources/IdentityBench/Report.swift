import Foundation

/// One row of the table: a figure of both sides.
struct Figure: Encodable {
  /// What it is a number of.
  enum Unit: String, Encodable {
    case microseconds, milliseconds, megabytes
    case perSecond = "per second"

    /// How it stands behind a number.
    var symbol: String {
      switch self {
      case .microseconds: "µs"
      case .milliseconds: "ms"
      case .megabytes: "MB"
      case .perSecond: "/s"
      }
    }
  }

  /// What was measured.
  let name: String
  /// What the two numbers count.
  let unit: Unit
  /// On the side that is compared with.
  let usual: Double
  /// On the side that is compared.
  let other: Double
  /// How many times worse the second is: more time or memory, or less in a second.
  let ratio: Double
  /// What the ratio may be at most; nil where nothing is asserted.
  let limit: Double?
  /// The first and the third quartile of the ratios of single rounds, where there are rounds.
  let quartiles: [Double]?

  /// Puts a row together.
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

  /// The same of several runs; its quartiles are those of their ratios.
  static func median(of runs: [Figure]) -> Figure {
    Figure(
      runs[0], Pair(usual: runs.map(\.usual).median, other: runs.map(\.other).median), ratios: runs.map(\.ratio))
  }

  private static func ratio(_ usual: Double, _ other: Double, _ unit: Unit) -> Double {
    unit == .perSecond ? usual / other : other / usual
  }

  /// Whether the ratio is what it may be. One that is not a number is not.
  var isWithinLimit: Bool { limit.map { ratio <= $0 } ?? true }
}

/// What a benchmark found.
struct Report: Findings {
  /// The benchmark's name.
  let benchmark: String
  /// What it compared, in the words that stand above the columns.
  let columns: [String]
  /// How often it measured in turn.
  let rounds: Int
  /// How often all of that was done.
  private(set) var runs = 1
  /// The table.
  let figures: [Figure]
  /// Whether everything asserted holds.
  let isWithinLimits: Bool

  /// Puts a report together.
  init(benchmark: String, columns: Pair<String>, rounds: Int, figures: [Figure]) {
    self.benchmark = benchmark
    self.columns = [columns.usual, columns.other]
    self.rounds = rounds
    self.figures = figures
    isWithinLimits = figures.allSatisfy(\.isWithinLimit)
  }

  /// Two columns are no drawing.
  func drawing(on machine: Machine) -> Drawing? { nil }

  /// The median of several runs, row by row.
  static func median(of runs: [Report]) -> Report {
    let figures = runs[0].figures.indices.map { place in Figure.median(of: runs.map { $0.figures[place] }) }
    var report = Report(
      benchmark: runs[0].benchmark, columns: Pair(usual: runs[0].columns[0], other: runs[0].columns[1]),
      rounds: runs[0].rounds, figures: figures)
    report.runs = runs.count
    return report
  }

  /// For people: a table, and what it means.
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
  /// What stands in the columns of its row.
  fileprivate var cells: [String] {
    let range = quartiles.map { "\($0[0].short) to \($0[1].short)" } ?? ""
    return [name, "\(usual.short) \(unit.symbol)", "\(other.short) \(unit.symbol)", ratio.short, range]
  }
}

extension Double {
  /// Three digits at least, and those before the point whole.
  var short: String {
    guard isFinite else { return "–" }
    if self >= 100 { return Int(rounded()).grouped }
    return String(format: self >= 10 ? "%.1f" : "%.2f", self)
  }
}

extension Int {
  /// With a comma between thousands.
  var grouped: String {
    let digits = String(self)
    return String(
      digits.enumerated().flatMap { place, digit in
        place > 0 && (digits.count - place) % 3 == 0 ? [",", digit] : [digit]
      })
  }
}
