import Foundation

/// One number of one server, or of one size.
struct Measurement: Encodable {
  /// What it is a number of.
  let name: String
  /// The median of all rounds.
  let median: Double
  /// The first and the third quartile of them.
  let quartiles: [Double]

  /// From the numbers of the rounds.
  init(_ name: String, _ rounds: [Double]) {
    self.name = name
    median = rounds.median
    quartiles = [rounds.percentile(0.25), rounds.percentile(0.75)]
  }
}

/// What is asserted of one measurement.
struct Target: Encodable {
  /// In which direction it is better.
  enum Relation: String, Encodable {
    case atMost = "at most"
    case atLeast = "at least"
  }

  /// Which one it is asserted of.
  let name: String
  /// On which side of the number it has to be.
  let relation: Relation
  /// The number, of the ratio where there is one to compare with, else of the measurement itself.
  let number: Double

  /// It may be no more than that.
  static func atMost(_ number: Double, _ name: String = "identityd") -> Target {
    Target(name: name, relation: .atMost, number: number)
  }

  /// It may be no less than that.
  static func atLeast(_ number: Double, _ name: String = "identityd") -> Target {
    Target(name: name, relation: .atLeast, number: number)
  }
}

/// One row of the table: the same measured of several.
struct Row: Encodable {
  /// What a number counts.
  enum Unit: String, Encodable {
    case microseconds = "µs"
    case milliseconds = "ms"
    case megabytes = "MB"
    case bytes = "B"
    case perSecond = "/s"
    case instructions = "instructions"
    case times = "x"
  }

  /// What was measured.
  let name: String
  /// What all its numbers count.
  let unit: Unit
  /// Which one the others are compared with; nil where each number stands for itself.
  let base: String?
  /// The numbers.
  let measurements: [Measurement]
  /// What is asserted; nil where it is only reported.
  let target: Target?
  /// What has to be known of it.
  let remark: String?
  /// Whether what is asserted holds.
  let isMet: Bool

  /// Puts a row together.
  init(
    _ name: String, _ unit: Unit, _ measurements: [Measurement], base: String? = nil, target: Target? = nil,
    remark: String? = nil
  ) {
    self.name = name
    self.unit = unit
    self.measurements = measurements
    self.base = base
    self.target = target
    self.remark = remark
    let judged = target.flatMap { target in measurements.first { $0.name == target.name } }
    let number = judged.map { Self.ratio($0, to: base, in: measurements) ?? $0.median }
    isMet =
      switch (target, number) {
      case (nil, _): true
      case (let target?, let number?):
        target.relation == .atMost ? number <= target.number : number >= target.number
      case (_, nil): false
      }
  }

  /// How many times as much as that of the base a measurement is; nil where there is none.
  func ratio(_ measurement: Measurement) -> Double? { Self.ratio(measurement, to: base, in: measurements) }

  private static func ratio(_ measurement: Measurement, to base: String?, in all: [Measurement]) -> Double? {
    guard let base = all.first(where: { $0.name == base }) else { return nil }
    return measurement.median / base.median
  }

  /// What is asserted, in words.
  var demand: String? {
    target.map { target in
      let unit = base == nil ? unit.rawValue : "x"
      return "\(target.relation.rawValue) \(target.number.short) \(unit)" + (base.map { " of \($0)" } ?? "")
    }
  }

  /// For people: what was measured, and how it compares.
  fileprivate var text: String {
    let head = name + (demand.map { ": \($0): \(isMet ? "met" : "MISSED")" } ?? "") + "\n"
    let lines = measurements.map { measurement in
      [
        "  " + measurement.name, "\(measurement.median.short) \(unit.rawValue)",
        "\(measurement.quartiles[0].short) to \(measurement.quartiles[1].short)",
        ratio(measurement).map { "\($0.short) x" } ?? "",
      ]
    }
    return head + table(lines) + (remark.map { "  (\($0))\n" } ?? "")
  }

  /// In one line: what is asserted.
  fileprivate var summary: [String]? {
    guard let target, let demand else { return nil }
    let judged = measurements.first { $0.name == target.name }
    let number = judged.map { judged in
      ratio(judged).map { "\($0.short) x" } ?? "\(judged.median.short) \(unit.rawValue)"
    }
    return [name, number ?? "not measured", demand, isMet ? "met" : "MISSED"]
  }
}

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

  /// For people: how the servers were started, a table, and what it means.
  var text: String {
    (["\(benchmark): medians of up to \(rounds) rounds, with their quartiles\n"]
      + (servers.isEmpty ? [] : [servers.map { "\($0)\n" }.joined()])
      + rows.map(\.text) + [table(rows.compactMap(\.summary))])
      .joined(separator: "\n")
  }

  /// A drawing of the rows.
  var drawing: Drawing? {
    switch style {
    case .bars: Drawing(bars: self)
    case .growth: Drawing(growth: self)
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
/// - Returns: for each side, for each number that it gives, what came of the rounds. Those that warm up are left out.
func inTurn<Side>(
  _ sides: [Side], rounds: Int, warmUp: Int = 1, _ measure: (Side) throws -> [Double]
) rethrows -> [[[Double]]] {
  var results: [[[Double]]] = sides.map { _ in [] }
  for round in 0..<warmUp + rounds {
    for (index, side) in sides.enumerated() {
      let numbers = try measure(side)
      guard round >= warmUp else { continue }
      if results[index].isEmpty { results[index] = numbers.map { _ in [] } }
      for (place, number) in numbers.enumerated() { results[index][place].append(number) }
    }
  }
  return results
}
