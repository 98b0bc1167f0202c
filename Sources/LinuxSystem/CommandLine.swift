import CLinux
import Glibc

/// The arguments of a program, read by getopt_long(3): long options may be cut short where that is clear, stand anywhere
/// among the words, and `--` ends them.
package struct CommandLine: Equatable, Sendable {
  /// A long option that a program knows.
  package struct Option: Equatable, Sendable {
    /// Without its dashes.
    package let name: String
    /// What stands for its value in `--help`; nil where it takes none.
    package let value: String?
    /// What it does, in one line.
    package let summary: String

    /// Declares an option.
    package init(_ name: String, value: String? = nil, _ summary: String) {
      self.name = name
      self.value = value
      self.summary = summary
    }
  }

  /// An option that is unknown, or whose value is missing or too much.
  package struct UsageError: Error, Equatable, Sendable, CustomStringConvertible {
    /// What is wrong.
    package let description: String

    /// Says what is wrong.
    package init(_ description: String) { self.description = description }
  }

  /// The options given, the last of each; those without a value have "".
  package private(set) var options: [String: String] = [:]
  /// The words, in order.
  package private(set) var words: [String] = []

  /// Reads arguments, the program's own name not among them.
  package init(_ arguments: [String], _ known: [Option]) throws(UsageError) {
    var failure: UsageError?
    unsafe withCStrings(["program"] + arguments) { vector in
      unsafe withCStrings(known.map(\.name)) { names in
        failure = unsafe read(vector, count: Int32(arguments.count + 1), names, known)
      }
    }
    if let failure { throw failure }
  }

  private mutating func read(
    _ vector: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>, count: Int32,
    _ names: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>, _ known: [Option]
  ) -> UsageError? {
    let takes = known.map { Int32($0.value == nil ? 0 : 1) }
    var next: Int32 = 0
    while true {
      var value: UnsafePointer<CChar>?
      let constant = unsafe UnsafeRawPointer(names).assumingMemoryBound(to: UnsafePointer<CChar>?.self)
      let found = unsafe clinux_next_option(count, vector, constant, takes, Int32(known.count), &next, &value)
      if found == -1 { break }
      guard found >= 0 else {
        // Within a cluster of short options getopt has not gone on to the next argument yet.
        let before = unsafe Self.text(vector[Int(max(next, 2)) - 1])
        let here = unsafe next < count ? Self.text(vector[Int(next)]) : ""
        let argument = before.utf8.first == UInt8(ascii: "-") && before != "-" ? before : here
        return UsageError(
          found == -2 ? "unknown option '\(argument)'" : "option '\(argument)' takes a value, or takes none")
      }
      options[known[Int(found)].name] = unsafe value.map { unsafe String(cString: $0) } ?? ""
    }
    words = (Int(next)..<Int(count)).map { unsafe Self.text(vector[$0]) }
    return nil
  }

  private static func text(_ pointer: UnsafeMutablePointer<CChar>?) -> String {
    unsafe pointer.map { unsafe String(cString: $0) } ?? ""
  }

  /// The lines of `--help` that list options.
  package static func help(_ known: [Option]) -> String {
    let heads = known.map { "--\($0.name)" + ($0.value.map { "=\($0)" } ?? "") }
    let width = heads.map(\.count).max() ?? 0
    return zip(heads, known).map { head, option in
      "  \(head)\(String(repeating: " ", count: width - head.count))  \(option.summary)\n"
    }.joined()
  }
}

/// Lends out an array of C strings, with the null pointer that ends it.
func withCStrings(_ strings: [String], _ body: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> Void) {
  var pointers = unsafe strings.map { unsafe strdup($0) } + [nil]
  defer { for index in unsafe pointers.indices { unsafe free(pointers[index]) } }
  unsafe pointers.withUnsafeMutableBufferPointer { buffer in
    if let start = buffer.baseAddress { unsafe body(start) }
  }
}
