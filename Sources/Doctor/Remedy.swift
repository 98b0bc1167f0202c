import IdentityWire

/// A command that mends something, as a person types it.
package struct Remedy: Equatable, Sendable {
  /// Whether it takes root.
  let needsRoot: Bool
  /// What the shell reads: each word is quoted already where it has to be.
  private let line: String

  /// A command for root.
  static func root(_ words: String...) -> Remedy { Remedy(needsRoot: true, line: joined(words)) }

  /// A command for root, or for whoever it is that runs a daemon of his own.
  static func command(asRoot needsRoot: Bool, _ words: [String]) -> Remedy {
    Remedy(needsRoot: needsRoot, line: joined(words))
  }

  /// A command for everybody.
  static func anybody(_ words: String...) -> Remedy { Remedy(needsRoot: false, line: joined(words)) }

  /// Opens files in whichever editor is wanted.
  static func edit(asRoot needsRoot: Bool, _ files: [String]) -> Remedy {
    Remedy(needsRoot: needsRoot, line: "${EDITOR:-vi} \(joined(files))")
  }

  /// The command for this user, who types `sudo` unless he is root.
  package func text(for userID: UInt32) -> String { needsRoot && userID != 0 ? "sudo \(line)" : line }

  private static func joined(_ words: [String]) -> String { words.map(quoted).joined(separator: " ") }

  /// A word as bash(1) reads it back: bare, or quoted so that it holds no hidden character.
  static func quoted(_ word: String) -> String {
    let isBare = !word.isEmpty && word.utf8.allSatisfy(isPlain)
    if isBare { return word }
    guard word.unicodeScalars.contains(where: WordEncoder.isHidden) else {
      return "'\(word.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''"))'"
    }
    var text = "$'"
    for scalar in word.unicodeScalars {
      switch scalar {
      case "'", "\\": text += "\\\(scalar)"
      // bash has \u for characters too, as \x is for bytes.
      case _ where WordEncoder.isHidden(scalar): text += WordEncoder.escape(of: scalar)
      default: text.unicodeScalars.append(scalar)
      }
    }
    return text + "'"
  }

  private static func isPlain(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: "-_./:=@,+%".utf8.contains(byte)
    }
  }
}
