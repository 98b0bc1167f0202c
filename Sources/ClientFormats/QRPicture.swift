package import IdentityCore

/// A QR code for a terminal. A character shows two modules, one above the other.
package struct QRPicture: Equatable, Sendable {
  /// The width of the light margin in modules, which readers need (ISO/IEC 18004).
  private static let margin = 4
  /// The most modules of a side, which the largest QR code has.
  private static let mostModules = 177

  private let rows: [[Bool]]

  /// Reads rows of modules from the top, with slashes between them: 1 is a dark module, and 0 a light one. Nil for
  /// anything else.
  package init?(_ text: Text) {
    let rows = text.bytes.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    guard (1...Self.mostModules).contains(rows.count),
      rows.allSatisfy({ row in row.count == rows.count && row.allSatisfy { [0x30, 0x31].contains($0) } })
    else { return nil }
    self.rows = rows.map { $0.map { $0 == UInt8(ascii: "1") } }
  }

  /// Returns the lines of the picture. Light modules are drawn, because most terminals are dark. With colours, the
  /// picture is white on black on every terminal.
  package func text(isColoured: Bool) -> String {
    let size = rows.count + 2 * Self.margin
    let (start, end) = isColoured ? ("\u{1b}[40;37;1m", "\u{1b}[0m") : ("", "")
    return stride(from: 0, to: size, by: 2).map { row in
      let line = (0..<size).map { column in
        switch (isLight(row, column), isLight(row + 1, column)) {
        case (true, true): "█"
        case (true, false): "▀"
        case (false, true): "▄"
        case (false, false): " "
        }
      }
      return "\(start)\(line.joined())\(end)\n"
    }.joined()
  }

  private func isLight(_ row: Int, _ column: Int) -> Bool {
    let (row, column) = (row - Self.margin, column - Self.margin)
    return !rows.indices.contains(row) || !rows.indices.contains(column) || !rows[row][column]
  }
}
