import Foundation

/// The findings of a benchmark that compares more than two sides.
struct Comparison: Findings {
  /// The style in which rows are drawn.
  enum Style: String, Encodable {
    /// A bar for each measurement.
    case bars
    /// One plot for all rows with the same name up to the first colon. The name of each measurement is a number.
    case growth
  }

  /// The name of the benchmark.
  let benchmark: String
  /// The style in which the rows are drawn.
  let style: Style
  /// The maximum number of rounds of measurements.
  let rounds: Int
  /// The number of runs of the whole benchmark.
  private(set) var runs = 1
  /// The commands that started the servers.
  let servers: [String]
  /// The rows of the table.
  let rows: [Row]
  /// Whether every target is met.
  let isWithinLimits: Bool

  /// Creates a comparison.
  init(benchmark: String, style: Style, rounds: Int, servers: [String], rows: [Row]) {
    self.benchmark = benchmark
    self.style = style
    self.rounds = rounds
    self.servers = servers
    self.rows = rows
    isWithinLimits = rows.allSatisfy(\.isMet)
  }

  /// Returns the medians of several runs, row by row.
  static func median(of runs: [Comparison]) -> Comparison {
    let rows = runs[0].rows.indices.map { place in Row.median(of: runs.map { $0.rows[place] }) }
    var comparison = Comparison(
      benchmark: runs[0].benchmark, style: runs[0].style, rounds: runs[0].rounds, servers: runs[0].servers, rows: rows)
    comparison.runs = runs.count
    return comparison
  }

  /// A description of the numbers: medians, over how many rounds and runs.
  var basis: String {
    runs == 1
      ? "medians of up to \(rounds) rounds, with their quartiles"
      : "medians of \(runs) runs, with their quartiles; of each run the median of up to \(rounds) rounds"
  }

  /// The comparison for people: the commands of the servers, the rows, and a table of their meaning.
  var text: String {
    (["\(benchmark): \(basis)\n"]
      + (servers.isEmpty ? [] : [servers.map { "\($0)\n" }.joined()])
      + rows.map(\.text) + [table(rows.compactMap(\.summary))])
      .joined(separator: "\n")
  }

  /// Returns a drawing of the rows.
  func drawing(on machine: Machine) -> Drawing? {
    switch style {
    case .bars: Drawing(bars: self, on: machine)
    case .growth: Drawing(growth: self, on: machine)
    }
  }
}

/// Formats lines as a table. The first column is left-aligned, all others are right-aligned.
func table(_ lines: [[String]]) -> String {
  let columns = lines.map(\.count).max() ?? 0
  let widths = (0..<columns).map { column in lines.map { $0[column].count }.max() ?? 0 }
  return lines.map { line in
    let cells = zip(line, widths).enumerated().map { column, cell in
      let padding = String(repeating: " ", count: cell.1 - cell.0.count)
      return column == 0 ? cell.0 + padding : padding + cell.0
    }
    return cells.joined(separator: "  ").trimmingCharacters(in: .newlines) + "\n"
  }.joined()
}

/// Measures all sides in turn, so that other load on the machine affects all of them.
///
/// - Returns: the numbers of each round, for each side. Warm-up rounds are left out.
func inTurn<Side>(
  _ sides: [Side], rounds: Int, warmUp: Int = 1, _ measure: (Side) throws -> [Double]
) rethrows -> [[[Double]]] {
  var results: [[[Double]]] = sides.map { _ in [] }
  for round in 0..<warmUp + rounds {
    for (index, side) in sides.enumerated() {
      let numbers = try measure(side)
      if round >= warmUp { results[index].append(numbers) }
    }
  }
  return results
}
