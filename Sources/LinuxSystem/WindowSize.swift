import Glibc

/// The size of a terminal in characters.
package struct WindowSize: Equatable, Sendable {
  /// The number of columns. Nil if the terminal does not report it.
  package let columns: Int?
  /// The number of lines. Nil if the terminal does not report it.
  package let lines: Int?

  /// The width that programs assume if no other is known, as hostnamectl(1) does.
  package static let usualColumns = 80

  /// Asks the terminal of a descriptor (TIOCGWINSZ). Another kind of file has no size.
  init(ofDescriptor number: Int32) {
    var size = winsize()
    guard unsafe ioctl(number, UInt(TIOCGWINSZ), &size) == 0 else {
      (columns, lines) = (nil, nil)
      return
    }
    columns = size.ws_col > 0 ? Int(size.ws_col) : nil
    lines = size.ws_row > 0 ? Int(size.ws_row) : nil
  }

  /// Creates a size from the terminal of a stream.
  ///
  /// The variables COLUMNS and LINES override the terminal (POSIX.1-2024, XBD 8.3).
  package init(of stream: StandardStream) {
    let terminal = stream.terminalSize
    columns = Self.number("COLUMNS") ?? terminal.columns
    lines = Self.number("LINES") ?? terminal.lines
  }

  private static func number(_ variable: String) -> Int? {
    Environment[variable].flatMap { Int($0) }.flatMap { (1...65_535).contains($0) ? $0 : nil }
  }
}
