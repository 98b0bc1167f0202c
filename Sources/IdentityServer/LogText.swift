import IdentityCore

/// Texts of the log: whatever a value holds, it is one line, of a bounded length.
package enum LogText {
  /// The text with each character that is no part of a line, or that moves the others about, written as an escape: a
  /// line's end, ESC, and what turns the direction of writing. One that is too long is cut.
  ///
  /// A backslash stays as it is, for the names of units have them; so what an escape stands for can be doubted, but not
  /// where an entry ends.
  package static func line(_ text: String) -> String {
    // Nearly all texts.
    if text.utf8.count <= Bound.logTextLength, text.utf8.allSatisfy({ (0x20...0x7e).contains($0) }) { return text }
    var line = String.UnicodeScalarView()
    var length = 0
    for scalar in text.unicodeScalars {
      let shown = isPlain(scalar) ? String(scalar) : escape(scalar)
      length += shown.utf8.count
      guard length <= Bound.logTextLength else {
        line.append("…")
        break
      }
      line.append(contentsOf: shown.unicodeScalars)
    }
    return String(line)
  }

  private static func isPlain(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator: false
    default: true
    }
  }

  /// As JSON has it, and for what JSON has no escape of its own, as Swift has it.
  private static func escape(_ scalar: Unicode.Scalar) -> String {
    switch scalar {
    case "\n": return "\\n"
    case "\r": return "\\r"
    case "\t": return "\\t"
    default:
      let digits = String(scalar.value, radix: 16)
      guard digits.utf8.count <= 4 else { return "\\u{\(digits)}" }
      return "\\u" + String(repeating: "0", count: 4 - digits.utf8.count) + digits
    }
  }
}
