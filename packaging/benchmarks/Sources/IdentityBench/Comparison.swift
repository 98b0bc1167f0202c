import Foundation

/// What a benchmark found that compares more than two.
struct Comparison: Findings {
  /// How its rows are drawn.
  enum Style: String, Encodable {
    /// A bar for each measurement.
    case bars
    /// Rows of one name up to the first colon in one plot; each measurement's name is a number.
    case growth
  }

  /// The benchmark's name.
  let benchmark: String
  /// How its rows are drawn.
  let style: Style
  /// How often it measured in turn, at most.
  let rounds: Int
  /// How often all of that was done.
  private(set) var runs = 1
  /// How the servers were started.
  let servers: [String]
  /// The table.
  let rows: [Row]
  /// Whether everything asserted holds.
  let isWithinLimits: Bool

  /// Puts a comparison together.
  init(benchmark: String, style: Style, rounds: Int, servers: [String], rows: [Row]) {
    self.benchmark = benchmark
    self.style = style
    self.rounds = rounds
    self.servers = servers
    self.rows = rows
    isWithinLimits = rows.allSatisfy(\.isMet)
  }

  /// The median of several runs, row by row.
  static func median(of runs: [Comparison]) -> Comparison {
    let rows = runs[0].rows.indices.map { place in Row.median(of: runs.map { $0.rows[place] }) }
    var comparison = Comparison(
      benchmark: runs[0].benchmark, style: runs[0].style, rounds: runs[0].rounds, servers: runs[0].servers, rows: rows)
    comparison.runs = runs.count
    return comparison
  }

  /// What its numbers are.
  var basis: String {
    runs == 1
      ? "medians of up to \(rounds) rounds, with their quartiles"
      : "medians of \(runs) runs, with their quartiles; of each run the median of up to \(rounds) rounds"
  }

  /// For people: how the servers were started, a table, and what it means.
  var text: String {
    (["\(benchmark): \(basis)\n"]
      + (servers.isEmpty ? [] : [servers.map { "\($0)\n" }.joined()])
      + rows.map(\.text) + [table(rows.compactMap(\.summary))])
      .joined(separator: "\n")
  }

  /// A drawing of the rows.
  func drawing(on machine: Machine) -> Drawing? {
    switch style {
    case .bars: Drawing(bars: self, on: machine)
    case .growth: Drawing(growth: self, on: machine)
    }
  }
}

/// Lines in columns, the first of them on the left.
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

/// Measures all sides in turn, so that whatever else the machine does meets all of them.
///
/// - Returns: for each side the numbers of each round. Rounds that warm up are left out.
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
