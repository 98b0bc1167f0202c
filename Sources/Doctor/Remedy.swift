import IdentityWire

/// A shell command that repairs a fault, or shows more about it.
package struct Remedy: Equatable, Sendable {
  /// One command of the line.
  private struct Step: Equatable {
    /// Whether the command needs root.
    let needsRoot: Bool
    /// The command line, with quoted words as far as the shell requires it.
    let line: String
  }

  /// The commands, of which each one runs only if the one before it succeeded.
  private let steps: [Step]

  private init(needsRoot: Bool, line: String) { steps = [Step(needsRoot: needsRoot, line: line)] }

  private init(_ steps: [Step]) { self.steps = steps }

  /// Creates a command for root.
  static func root(_ words: String...) -> Remedy { Remedy(needsRoot: true, line: joined(words)) }

  /// Creates a command for root, or for the user of a daemon that was started by hand.
  static func command(asRoot needsRoot: Bool, _ words: [String]) -> Remedy {
    Remedy(needsRoot: needsRoot, line: joined(words))
  }

  /// Creates a command for any user.
  static func anybody(_ words: String...) -> Remedy { Remedy(needsRoot: false, line: joined(words)) }

  /// Creates a command that opens files in the user's preferred editor.
  static func edit(asRoot needsRoot: Bool, _ files: [String]) -> Remedy {
    Remedy(needsRoot: needsRoot, line: "${EDITOR:-vi} \(joined(files))")
  }

  /// Creates a command from a line for the shell, which any user may run.
  ///
  /// - Parameter line: the line, in which every word from elsewhere is ``quoted(_:)``.
  static func shell(_ line: String) -> Remedy { Remedy(needsRoot: false, line: line) }

  /// Creates one line of commands of which each one runs only if the one before it succeeded.
  ///
  /// For commands that would do harm one by one, such as the start of a daemon without the data that a failed command
  /// should have brought.
  static func chain(_ remedies: [Remedy]) -> Remedy { Remedy(remedies.flatMap(\.steps)) }

  /// Returns the command line for a user, with `sudo` if a command needs root and the user is not root.
  package func text(for userID: UInt32) -> String {
    steps.map { $0.needsRoot && userID != 0 ? "sudo \($0.line)" : $0.line }.joined(separator: " && ")
  }

  private static func joined(_ words: [String]) -> String { words.map(quoted).joined(separator: " ") }

  /// Returns a word as bash(1) reads it back: bare, or quoted so that it contains no hidden character.
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
      // In `$'…'` bash reads `\u` as a character, like JSON; `\x` would be a byte.
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
