/// One number of one server, or of one size.
struct Measurement: Encodable {
  /// What it is a number of.
  let name: String
  /// The median of all rounds.
  let median: Double
  /// The first and the third quartile of them.
  let quartiles: [Double]
  /// How many times as much it is as what it is compared with; nil where there is nothing to compare it with.
  fileprivate(set) var ratio: Double?

  /// From the numbers of the rounds.
  init(_ name: String, _ rounds: [Double]) {
    self.name = name
    median = rounds.median
    quartiles = [rounds.percentile(0.25), rounds.percentile(0.75)]
  }

  /// The same of several runs: the median of their medians, with the quartiles of those, and of their ratios.
  fileprivate static func median(of runs: [Measurement]) -> Measurement {
    var measurement = Measurement(runs[0].name, runs.map(\.median))
    let ratios = runs.compactMap(\.ratio)
    if !ratios.isEmpty { measurement.ratio = ratios.median }
    return measurement
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

  /// Puts a row together, and compares.
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

  /// The same row of several runs.
  static func median(of runs: [Row]) -> Row {
    let measurements = runs[0].measurements.map { first in
      Measurement.median(of: runs.compactMap { run in run.measurements.first { $0.name == first.name } })
    }
    return Row(
      runs[0].name, runs[0].unit, compared: measurements, base: runs[0].base, target: runs[0].target,
      remark: runs[0].remark)
  }

  /// What is asserted, in words.
  var demand: String? {
    target.map { target in
      let unit = base == nil ? unit.rawValue : "x"
      return "\(target.relation.rawValue) \(target.number.short) \(unit)" + (base.map { " of \($0)" } ?? "")
    }
  }

  /// For people: what was measured, and how it compares.
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

  /// In one line: what is asserted.
  var summary: [String]? {
    guard let target, let demand else { return nil }
    let judged = measurements.first { $0.name == target.name }
    let number =
      base == nil ? judged.map { "\($0.median.short) \(unit.rawValue)" } : judged?.ratio.map { "\($0.short) x" }
    return [name, number ?? "not measured", demand, isMet ? "met" : "MISSED"]
  }
}
