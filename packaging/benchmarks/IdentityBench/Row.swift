/// A number of one server, or of one size.
struct Measurement: Encodable {
  /// The name of the server, or the size.
  let name: String
  /// The median of all rounds.
  let median: Double
  /// The first and third quartiles of all rounds.
  let quartiles: [Double]
  /// The ratio to the base of the row. Nil without a base.
  fileprivate(set) var ratio: Double?

  /// Creates a measurement from the numbers of all rounds.
  init(_ name: String, _ rounds: [Double]) {
    self.name = name
    median = rounds.median
    quartiles = [rounds.percentile(0.25), rounds.percentile(0.75)]
  }

  /// Returns the measurement of several runs: the median and the quartiles of their medians, and the
  /// median of their ratios.
  fileprivate static func median(of runs: [Measurement]) -> Measurement {
    var measurement = Measurement(runs[0].name, runs.map(\.median))
    let ratios = runs.compactMap(\.ratio)
    if !ratios.isEmpty { measurement.ratio = ratios.median }
    return measurement
  }
}

/// A limit that is asserted for one measurement.
struct Target: Encodable {
  /// The kind of limit: an upper or a lower bound.
  enum Relation: String, Encodable {
    case atMost = "at most"
    case atLeast = "at least"
  }

  /// The name of the measurement.
  let name: String
  /// The side of the limit on which the number must be.
  let relation: Relation
  /// The limit of the ratio if the row has a base, else of the measurement itself.
  let number: Double

  /// Returns an upper bound.
  static func atMost(_ number: Double, _ name: String = "identityd") -> Target {
    Target(name: name, relation: .atMost, number: number)
  }

  /// Returns a lower bound.
  static func atLeast(_ number: Double, _ name: String = "identityd") -> Target {
    Target(name: name, relation: .atLeast, number: number)
  }
}

/// A row of the table: one figure of several servers or sizes.
struct Row: Encodable {
  /// The unit of a number.
  enum Unit: String, Encodable {
    case microseconds = "µs"
    case milliseconds = "ms"
    case megabytes = "MB"
    case bytes = "B"
    case perSecond = "/s"
    case instructions = "instructions"
    case times = "x"
  }

  /// The name of the figure.
  let name: String
  /// The unit of all numbers.
  let unit: Unit
  /// The name of the measurement that all others are compared with. Nil if each number stands for itself.
  let base: String?
  /// The measurements.
  let measurements: [Measurement]
  /// The asserted limit. Nil if the row is only reported.
  let target: Target?
  /// A note for the reader.
  let remark: String?
  /// Whether the asserted limit holds.
  let isMet: Bool

  /// Creates a row and computes its ratios.
  init(
    _ name: String, _ unit: Unit, _ measurements: [Measurement], base: String? = nil, target: Target? = nil,
    remark: String? = nil
  ) {
    var measurements = measurements
    if let base = measurements.first(where: { $0.name == base })?.median {
      for index in measurements.indices { measurements[index].ratio = measurements[index].median / base }
    }
    self.init(name, unit, compared: measurements, base: base, target: target, remark: remark)
  }

  private init(
    _ name: String, _ unit: Unit, compared measurements: [Measurement], base: String?, target: Target?, remark: String?
  ) {
    self.name = name
    self.unit = unit
    self.measurements = measurements
    self.base = base
    self.target = target
    self.remark = remark
    let judged = target.flatMap { target in measurements.first { $0.name == target.name } }
    isMet =
      switch (target, judged.flatMap { base == nil ? $0.median : $0.ratio }) {
      case (nil, _): true
      case (let target?, let number?):
        target.relation == .atMost ? number <= target.number : number >= target.number
      case (_, nil): false
      }
  }

  /// Returns the row of several runs, with the median of each number.
  static func median(of runs: [Row]) -> Row {
    let measurements = runs[0].measurements.map { first in
      Measurement.median(of: runs.compactMap { run in run.measurements.first { $0.name == first.name } })
    }
    return Row(
      runs[0].name, runs[0].unit, compared: measurements, base: runs[0].base, target: runs[0].target,
      remark: runs[0].remark)
  }

  /// The asserted limit in words.
  var demand: String? {
    target.map { target in
      let unit = base == nil ? unit.rawValue : "x"
      return "\(target.relation.rawValue) \(target.number.short) \(unit)" + (base.map { " of \($0)" } ?? "")
    }
  }

  /// The row for people: the measurements and their ratios.
  var text: String {
    let head = name + (demand.map { ": \($0): \(isMet ? "met" : "MISSED")" } ?? "") + "\n"
    let lines = measurements.map { measurement in
      [
        "  " + measurement.name, "\(measurement.median.short) \(unit.rawValue)",
        "\(measurement.quartiles[0].short) to \(measurement.quartiles[1].short)",
        measurement.ratio.map { "\($0.short) x" } ?? "",
      ]
    }
    return head + table(lines) + (remark.map { "  (\($0))\n" } ?? "")
  }

  /// The verdict on the asserted limit, as the columns of one line.
  var summary: [String]? {
    guard let target, let demand else { return nil }
    let judged = measurements.first { $0.name == target.name }
    let number =
      base == nil ? judged.map { "\($0.median.short) \(unit.rawValue)" } : judged?.ratio.map { "\($0.short) x" }
    return [name, number ?? "not measured", demand, isMet ? "met" : "MISSED"]
  }
}
