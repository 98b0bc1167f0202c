import Glibc

/// A question to the person at the terminal. The default answer is no.
package enum Confirmation {
  /// Whether a person can be asked: standard input and standard error are terminals.
  package static var isPossible: Bool { isatty(STDIN_FILENO) == 1 && StandardStream.error.isTerminal }

  /// Writes a question to standard error and reads a line from standard input.
  ///
  /// - Returns: whether the line is `y` or `yes`, in any case. False at the end of the input.
  package static func ask(_ question: String) -> Bool {
    StandardStream.error.write("\(question) [y/N] ")
    guard let line = readLine() else {
      StandardStream.error.write("\n")
      return false
    }
    return ["y", "yes"].contains(line.lowercased())
  }
}
