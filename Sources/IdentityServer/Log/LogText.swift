import IdentityCore

/// The conversion of texts for the log into one line of bounded length.
package enum LogText {
  /// Returns a text as one line of bounded length, with unsafe characters as escapes.
  ///
  /// Unsafe characters are line ends, control characters such as ESC, and characters that change the direction of
  /// writing. A text longer than ``Bound/logTextLength`` is cut, and ends with `…`.
  ///
  /// A backslash stays as it is, because unit names contain backslashes. So it can be unclear whether a text contained
  /// an escape or the escaped character, but never where an entry ends.
  package static func line(_ text: String) -> String {
    // The case of nearly all texts.
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

  /// Returns the JSON escape of a character, or the Swift escape if it takes more than four digits.
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
