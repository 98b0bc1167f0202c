/// The number of columns that a text takes on a terminal, counted as wcwidth(3) does.
enum DisplayWidth {
  /// Returns the columns of a text without hidden characters.
  static func columns(of text: String) -> Int {
    text.unicodeScalars.reduce(0) { $0 + columns(of: $1) }
  }

  /// Returns the longest beginning of a text that takes at most `columns`, without cutting a character in two.
  static func prefix(of text: String, columns: Int) -> String {
    var left = columns
    var result = ""
    for character in text {
      left -= self.columns(of: String(character))
      guard left >= 0 else { break }
      result.append(character)
    }
    return result
  }

  private static func columns(of scalar: Unicode.Scalar) -> Int {
    // Most texts are ASCII.
    if scalar.isASCII { return 1 }
    switch scalar.properties.generalCategory {
    case .nonspacingMark, .enclosingMark, .format: return 0
    default: return isWide(scalar) ? 2 : isJoined(scalar) ? 0 : 1
    }
  }

  /// Whether a character has the property East_Asian_Width=W or F (UAX #11, Unicode 15.1).
  private static func isWide(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x1100...0x115f, 0x2329...0x232a, 0x2e80...0x303e, 0x3041...0x4dbf, 0x4e00...0xa4cf, 0xa960...0xa97f,
      0xac00...0xd7a3, 0xf900...0xfaff, 0xfe10...0xfe19, 0xfe30...0xfe6f, 0xff01...0xff60, 0xffe0...0xffe6,
      0x16fe0...0x18dff, 0x1aff0...0x1b2ff, 0x1f200...0x1f2ff, 0x20000...0x3fffd:
      true
    // Regional indicators: two of them are one flag of two columns.
    case 0x1f1e6...0x1f1ff: false
    default: scalar.properties.isEmojiPresentation
    }
  }

  /// Whether a character joins the one before: the vowels and the finals of Hangul syllables in parts.
  private static func isJoined(_ scalar: Unicode.Scalar) -> Bool {
    (0x1160...0x11ff).contains(scalar.value) || (0xd7b0...0xd7ff).contains(scalar.value)
  }
}
