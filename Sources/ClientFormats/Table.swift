import LinuxSystem

/// A table for a terminal: a line of titles, then a line for each row, in aligned columns with two spaces between.
struct Table {
  /// A column with its title.
  struct Column {
    let title: String
    /// Whether values may be cut if the table is too wide.
    let isElastic: Bool
    /// Whether values may be longer than the screen is wide. Only the last column may be open.
    let isOpen: Bool
    /// Whether values are aligned on the right.
    let isNumber: Bool
  }

  /// A value without hidden characters.
  struct Cell {
    let text: String
    let emphasis: Emphasis?
  }

  private let columns: [Column]
  private let rows: [[Cell]]

  /// No value is cut to fewer columns.
  private static let leastWidth = 8
  private static let gap = 2

  /// Creates a table. Each row has a cell for each column.
  init(_ columns: [Column], _ rows: [[Cell]]) {
    self.columns = columns
    self.rows = rows
  }

  /// Returns the lines of the table, and whether values were cut to fit it into the width.
  ///
  /// - Parameter width: the width of the screen; nil to cut nothing.
  /// - Returns: nil if the table is too wide even if values are cut.
  func text(within width: Int?, isColoured: Bool) -> (text: String, isCut: Bool)? {
    let natural = columns.indices.map { index in
      rows.reduce(DisplayWidth.columns(of: columns[index].title)) { widest, row in
        max(widest, DisplayWidth.columns(of: row[index].text))
      }
    }
    guard let widths = width.map({ fitted(natural, into: $0) }) ?? natural else { return nil }
    let titles = columns.map { Cell(text: $0.title, emphasis: .bold) }
    let lines = ([titles] + rows).map { line($0, widths, isColoured) }
    return (lines.joined(), widths != natural)
  }

  /// Returns widths that fit into the screen, taken from the widest elastic columns. Nil if there are none.
  private func fitted(_ natural: [Int], into width: Int) -> [Int]? {
    var widths = natural
    let needed = natural.indices.map { columns[$0].isOpen ? DisplayWidth.columns(of: columns[$0].title) : natural[$0] }
    var excess = needed.reduce(0, +) + Self.gap * (natural.count - 1) - width
    while excess > 0 {
      let elastic = widths.indices.filter { index in
        columns[index].isElastic
          && widths[index] > max(Self.leastWidth, DisplayWidth.columns(of: columns[index].title))
      }
      guard let widest = elastic.max(by: { widths[$0] < widths[$1] }) else { return nil }
      widths[widest] -= 1
      excess -= 1
    }
    return widths
  }

  private func line(_ cells: [Cell], _ widths: [Int], _ isColoured: Bool) -> String {
    var line = ""
    var spaces = 0
    for (index, cell) in cells.enumerated() {
      var text = cell.text
      if DisplayWidth.columns(of: text) > widths[index] {
        text = DisplayWidth.prefix(of: text, columns: widths[index] - 1) + "…"
      }
      let rest = widths[index] - DisplayWidth.columns(of: text)
      if columns[index].isNumber {
        spaces += rest
      }
      line += String(repeating: " ", count: spaces)
      line += cell.emphasis?.applied(to: text, isColoured: isColoured) ?? text
      spaces = Self.gap + (columns[index].isNumber ? 0 : rest)
    }
    return line + "\n"
  }
}
