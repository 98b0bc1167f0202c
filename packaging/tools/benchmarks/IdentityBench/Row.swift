import Foundation

/// The numbers of one server, or of one size.
struct Measurement {
  let name: String
  let rounds: [Double]
  var median: Double { rounds.median }
}

/// A limit that is asserted for one measurement.
struct Target {
  let name: String
  /// The allowed values of the ratio if the row has a base, else of the measurement itself.
  let allowed: ClosedRange<Double>

  static func atMost(_ number: Double, _ name: String = "identityd") -> Target {
    Target(name: name, allowed: -.infinity...number)
  }

  static func atLeast(_ number: Double, _ name: String = "identityd") -> Target {
    Target(name: name, allowed: number ... .infinity)
  }
}

/// A row of the table: one figure of several servers or sizes.
struct Row {
  let name: String
  let unit: String
  let measurements: [Measurement]
  /// The name of the measurement that all others are compared with. Nil if each number stands for itself.
  var base: String?
  /// The asserted limit. Nil if the row is only reported.
  var target: Target?
  var remark: String?

  /// Returns the ratio of a measurement to the base. Nil without a base.
  private func ratio(of measurement: Measurement) -> Double? {
    measurements.first { $0.name == base }.map { measurement.median / $0.median }
  }

  /// The number that the target is about: the ratio or the measurement itself.
  private var judged: Double? {
    guard let measurement = measurements.first(where: { $0.name == target?.name }) else { return nil }
    return base == nil ? measurement.median : ratio(of: measurement)
  }

  /// Whether the asserted limit holds. It never does without a number.
  var isMet: Bool { target.map { target in judged.map { target.allowed.contains($0) } ?? false } ?? true }

  /// The asserted limit in words.
  private var demand: String? {
    target.map { target in
      let (lower, upper) = (target.allowed.lowerBound, target.allowed.upperBound)
      let number = lower.isFinite ? "at least \(lower.short)" : "at most \(upper.short)"
      return base.map { "\(number) x of \($0)" } ?? "\(number) \(unit)"
    }
  }

  /// The row for people: the measurements and their ratios.
  fileprivate var text: String {
    let lines = measurements.map { measurement in
      [
        "  " + measurement.name, "\(measurement.median.short) \(unit)",
        "\(measurement.rounds.percentile(0.25).short) to \(measurement.rounds.percentile(0.75).short)",
        ratio(of: measurement).map { "\($0.short) x" } ?? "",
      ]
    }
    return name + "\n" + table(lines) + (remark.map { "  (\($0))\n" } ?? "")
  }

  /// The verdict on the asserted limit, as the columns of one line.
  fileprivate var verdict: [String]? {
    demand.map { demand in
      let number = judged.map { "\($0.short) \(base == nil ? unit : "x")" } ?? "not measured"
      return [name, number, demand, isMet ? "met" : "MISSED"]
    }
  }
}

extension Row {
  /// Creates a row with the number at a place of each round, for each name.
  init(
    _ name: String, _ unit: String, _ names: [String], _ results: [[[Double]]], place: Int = 0, base: String? = nil,
    target: Target? = nil, remark: String? = nil
  ) {
    let measurements = zip(names, results).map { Measurement(name: $0, rounds: $1.map { $0[place] }) }
    self.init(name: name, unit: unit, measurements: measurements, base: base, target: target, remark: remark)
  }
}

extension [Row] {
  /// All rows for people, and a table of the targets.
  var text: String { (map(\.text) + [table(compactMap(\.verdict))]).joined(separator: "\n") }
}

/// Formats lines as a table. The first column is left-aligned, all others are right-aligned.
private func table(_ lines: [[String]]) -> String {
  let columns = lines.map(\.count).max() ?? 0
  let widths = (0..<columns).map { column in lines.map { $0[column].count }.max() ?? 0 }
  return lines.map { line in
    let cells = zip(line, widths).enumerated().map { column, cell in
      let padding = String(repeating: " ", count: cell.1 - cell.0.count)
      return column == 0 ? cell.0 + padding : padding + cell.0
    }
    return cells.joined(separator: "  ") + "\n"
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

extension [Double] {
  /// The middle value, or the mean of the two middle values. 0 for an empty array.
  var median: Double {
    let ordered = sorted()
    guard !ordered.isEmpty else { return 0 }
    return (ordered[(ordered.count - 1) / 2] + ordered[ordered.count / 2]) / 2
  }

  /// Returns the smallest value that a given part of all values does not exceed (nearest rank). 0 for an empty array.
  func percentile(_ part: Double) -> Double {
    let ordered = sorted()
    guard !ordered.isEmpty else { return 0 }
    return ordered[Swift.min(ordered.count - 1, Swift.max(0, Int((part * Double(ordered.count)).rounded(.up)) - 1))]
  }
}

extension Double {
  /// The number with at least two digits that count, and with all digits before the decimal point.
  fileprivate var short: String {
    String(format: self >= 100 ? "%.0f" : self >= 10 ? "%.1f" : self == 0 || self >= 0.1 ? "%.2f" : "%.4f", self)
  }
}

/// The measured machine. Without it, a figure that is not a ratio means nothing.
enum Machine {
  static var text: String {
    let processor =
      lines("/proc/cpuinfo").first { $0.hasPrefix("model name") }?.split(separator: ":").last ?? " unknown"
    let kernel = lines("/proc/sys/kernel/osrelease").first ?? "unknown"
    let folder = FileManager.default.temporaryDirectory.path
    return "\(processor.dropFirst()), \(processors) processors; Linux \(kernel); state below \(folder)"
  }

  static var processors: Int { sysconf(Int32(_SC_NPROCESSORS_ONLN)) }

  private static func lines(_ path: String) -> [String] {
    ((try? String(contentsOfFile: path, encoding: .utf8)) ?? "").split(separator: "\n").map(String.init)
  }
}
