package import IdentityCore

/// The terminal that an answer is written to.
package struct Screen: Sendable {
  /// The width in columns. Nil for lines of any length.
  package let columns: Int?
  /// Whether the terminal shows colours.
  package let isColoured: Bool
  /// Whether tables show every value unchanged (`--full`), also if their lines become longer than the screen is wide.
  package let isFull: Bool
  /// The present time, from which ages are counted.
  package let now: Timestamp

  /// Describes a terminal.
  package init(columns: Int?, isColoured: Bool, isFull: Bool, now: Timestamp) {
    self.columns = columns
    self.isColoured = isColoured
    self.isFull = isFull
    self.now = now
  }
}
