import Foundation

/// A drawing as SVG: a sequence of shapes and texts, from top to bottom.
struct Drawing {
  private static let width = 900
  private static let margin = 16
  private static let textStyle = "font-family=\"sans-serif\" font-size=\"13\""
  private var body = ""
  private var height = margin

  /// Begins a drawing with its title, the machine, the basis of the numbers and a legend.
  private init(of comparison: Comparison, on machine: Machine, _ title: String, _ legend: String) {
    height += 8
    text(title, Self.margin, height, isBold: true, size: 18)
    for line in [machine.text, comparison.basis, legend] {
      height += 18
      text(line, Self.margin, height, color: Self.quiet)
    }
    height += 12
  }

  /// The drawing as the text of an SVG file.
  var svg: String {
    """
    <svg xmlns="http://www.w3.org/2000/svg" width="\(Self.width)" height="\(height + Self.margin)" \(Self.textStyle)>
    <rect width="100%" height="100%" fill="white"/>
    \(body)</svg>

    """
  }

  private static let ink = "#222"
  private static let quiet = "#666"

  private mutating func text(
    _ text: String, _ x: Int, _ y: Int, anchor: String = "start", isBold: Bool = false, size: Int? = nil,
    color: String = ink
  ) {
    let escaped = text.replacing("&", with: "&amp;").replacing("<", with: "&lt;")
    let style = (isBold ? " font-weight=\"bold\"" : "") + (size.map { " font-size=\"\($0)\"" } ?? "")
    body += "<text x=\"\(x)\" y=\"\(y)\" text-anchor=\"\(anchor)\" fill=\"\(color)\"\(style)>\(escaped)</text>\n"
  }

  private mutating func line(_ from: (Int, Int), _ to: (Int, Int), color: String = ink, isDashed: Bool = false) {
    let dashes = isDashed ? " stroke-dasharray=\"4 3\"" : ""
    body +=
      "<line x1=\"\(from.0)\" y1=\"\(from.1)\" x2=\"\(to.0)\" y2=\"\(to.1)\" stroke=\"\(color)\"\(dashes)/>\n"
  }

  // MARK: Bars

  private static let bars = 180...640
  /// The right edges of the columns of numbers and ratios.
  private static let columns = (number: 800, ratio: width - margin)
  private static let barHeight = 16

  /// Draws a bar for each measurement, and a line at the target.
  init(bars comparison: Comparison, on machine: Machine) {
    self.init(
      of: comparison, on: machine, "identityd beside other servers",
      "Bar: median; thin line: first to third quartile; dashed: target, which identityd meets (green) or misses (red).")
    for row in comparison.rows where !row.measurements.isEmpty { draw(row) }
  }

  private mutating func draw(_ row: Row) {
    let left = Self.bars.lowerBound
    let span = Double(Self.bars.upperBound - left)
    let base = row.measurements.first { $0.name == row.base }?.median ?? 1
    let target = row.target.map { $0.number * base }
    let largest = max(row.measurements.flatMap { [$0.median] + $0.quartiles }.max() ?? 0, target ?? 0)
    func x(_ number: Double) -> Int { left + Int(largest > 0 ? number / largest * span : 0) }
    height += Self.barHeight
    text("\(row.name)\(row.demand.map { ": \($0)" } ?? "")", Self.margin, height, isBold: true)
    height += Self.barHeight / 2
    let top = height
    for measurement in row.measurements {
      let isJudged = measurement.name == row.target?.name
      let color = isJudged ? (row.isMet ? "#2a7" : "#c43") : "#bbc"
      let middle = height + Self.barHeight - 4
      text(measurement.name, left - 8, middle, anchor: "end")
      body +=
        "<rect x=\"\(left)\" y=\"\(height)\" width=\"\(max(1, x(measurement.median) - left))\" "
        + "height=\"\(Self.barHeight - 3)\" fill=\"\(color)\"/>\n"
      line((x(measurement.quartiles[0]), height + 6), (x(measurement.quartiles[1]), height + 6))
      text("\(measurement.median.short) \(row.unit.rawValue)", Self.columns.number, middle, anchor: "end")
      if let ratio = measurement.ratio { text("\(ratio.short) x", Self.columns.ratio, middle, anchor: "end") }
      height += Self.barHeight
    }
    if let target { line((x(target), top - 2), (x(target), height), isDashed: true) }
    height += Self.barHeight
  }

  // MARK: Growth

  private static let plot = (left: 90, width: 600, height: 190)
  private static let colors = ["#c43", "#26c", "#2a7", "#a3c", "#c80"]

  /// Draws a plot for each figure, with a line for each kind. Both axes are logarithmic.
  init(growth comparison: Comparison, on machine: Machine) {
    self.init(
      of: comparison, on: machine, "How the cost of identityd grows", "Both axes of each plot are logarithmic.")
    var figures: [(name: String, rows: [Row])] = []
    for row in comparison.rows {
      guard let colon = row.name.firstIndex(of: ":") else { continue }
      let name = String(row.name[..<colon])
      if let place = figures.firstIndex(where: { $0.name == name }) {
        figures[place].rows.append(row)
      } else {
        figures.append((name, [row]))
      }
    }
    for figure in figures { draw(figure.name, figure.rows) }
  }

  private mutating func draw(_ name: String, _ rows: [Row]) {
    let points = rows.map { row in
      row.measurements.compactMap { point -> (Double, Double)? in
        guard let size = Double(point.name.replacing(",", with: "")), point.median > 0 else { return nil }
        return (log10(size), log10(point.median))
      }
    }
    let all = points.joined()
    guard let most = all.map(\.0).max(), let low = all.map(\.1).min(), let high = all.map(\.1).max() else { return }
    let right = most.rounded(.up)
    // Keeps curves away from the edges.
    let bottom = (low - 0.1).rounded(.down)
    let top = (high + 0.1).rounded(.up)
    height += 20
    text("\(name), in \(rows[0].unit.rawValue)", Self.margin, height, isBold: true)
    let origin = height + 14
    let floor = origin + Self.plot.height
    func x(_ value: Double) -> Int { Self.plot.left + Int((value - 1) / max(right - 1, 1) * Double(Self.plot.width)) }
    func y(_ value: Double) -> Int { origin + Int((top - value) / (top - bottom) * Double(Self.plot.height)) }
    for power in Int(bottom)...Int(top) {
      line((x(1), y(Double(power))), (x(right), y(Double(power))), color: "#ddd")
      text(pow(10, Double(power)).tick, x(1) - 8, y(Double(power)) + 4, anchor: "end")
    }
    for power in 1...max(1, Int(right)) {
      line((x(Double(power)), origin), (x(Double(power)), floor), color: "#ddd")
      text(pow(10, Double(power)).tick, x(Double(power)), floor + 18, anchor: "middle")
    }
    text("how many there are", Self.plot.left + Self.plot.width / 2, floor + 36, anchor: "middle", color: Self.quiet)
    for (index, (row, points)) in zip(rows, points).enumerated() {
      let color = Self.colors[index % Self.colors.count]
      let path = points.map { "\(x($0.0)),\(y($0.1))" }.joined(separator: " ")
      body += "<polyline points=\"\(path)\" fill=\"none\" stroke=\"\(color)\" stroke-width=\"2\"/>\n"
      for point in points { body += "<circle cx=\"\(x(point.0))\" cy=\"\(y(point.1))\" r=\"3\" fill=\"\(color)\"/>\n" }
      let label = row.name.split(separator: ":").last.map(String.init) ?? row.name
      text(
        label.trimmingCharacters(in: .whitespaces), Self.plot.left + Self.plot.width + 20, origin + 16 + index * 18,
        color: color)
    }
    height = floor + 50
  }
}

extension Double {
  /// The label of a power of ten at an axis.
  fileprivate var tick: String { self >= 1 ? Int(rounded()).grouped : String(format: "%g", self) }
}
