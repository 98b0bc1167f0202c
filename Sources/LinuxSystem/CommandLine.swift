import CLinux
import Glibc

/// The arguments of a program, parsed by getopt_long(3).
///
/// Long options may be abbreviated if the abbreviation is unambiguous, and may stand anywhere among the
/// words. Short options that take no value may be combined. `--` ends the options.
package struct CommandLine: Equatable, Sendable {
  /// An option of a program.
  package struct Option: Equatable, Sendable {
    /// The name, without its dashes.
    package let name: String
    /// The letter of the short option; nil if there is none.
    package let letter: Unicode.Scalar?
    /// The placeholder for the value in `--help`; nil if the option takes no value.
    package let value: String?
    /// The effect of the option, in one line.
    package let summary: String

    /// Declares an option.
    package init(_ name: String, letter: Unicode.Scalar? = nil, value: String? = nil, _ summary: String) {
      self.name = name
      self.letter = letter
      self.value = value
      self.summary = summary
    }
  }

  /// An option that is unknown, or whose value is missing or unexpected.
  package struct UsageError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The error in words.
    package let description: String
    /// The argument that is no known option; nil for every other error.
    package let unknownOption: String?

    package init(_ description: String) {
      self.description = description
      unknownOption = nil
    }

    /// Creates the error for an argument that is no known option.
    package init(unknownOption argument: String) {
      description = "unknown option '\(argument)'"
      unknownOption = argument
    }
  }

  /// Returns the value of an option that has a fixed list of values.
  ///
  /// - Throws: an error with the allowed values, if the name is none of them.
  package static func value<Value: RawRepresentable<String> & CaseIterable>(
    named name: String, of option: String
  ) throws(UsageError) -> Value {
    guard let value = Value(rawValue: name) else {
      let allowed = Value.allCases.map(\.rawValue).joined(separator: ", ")
      throw UsageError("--\(option) cannot be '\(name)'; allowed: \(allowed)")
    }
    return value
  }

  /// The given options with their values. The last use of an option counts. The value of an option
  /// without a value is empty.
  package private(set) var options: [String: String] = [:]
  /// The words that are not options, in order.
  package var words: [String] = []

  /// The arguments of this process, without the name of the program.
  ///
  /// `Swift.CommandLine` reads them from /proc/self/cmdline, and has none in a chroot without /proc.
  package static var arguments: [String] {
    var count: Int32 = 0
    guard let vector = unsafe clinux_arguments(&count) else { return [] }
    return (1..<max(1, Int(count))).map { unsafe text(vector[$0]) }
  }

  package init() {}

  /// Parses arguments, which do not include the program's own name.
  package init(_ arguments: [String], _ known: [Option]) throws(UsageError) { try parse(arguments, known) }

  /// Parses arguments of a program that takes only options.
  package init(_ arguments: [String], onlyOptions known: [Option], of program: String) throws(UsageError) {
    try parse(arguments, known)
    if let word = words.first {
      throw UsageError("unexpected argument '\(word)'; \(program) takes only options")
    }
  }

  /// Parses arguments, which do not include the program's own name.
  ///
  /// After a wrong option, parsing goes on, so that ``options`` has all other options when this throws.
  ///
  /// - Throws: the first error.
  package mutating func parse(_ arguments: [String], _ known: @autoclosure () -> [Option]) throws(UsageError) {
    // Most command lines have no option, and a program that runs once should not make its table of options for them.
    guard arguments.contains(where: { $0.utf8.first == UInt8(ascii: "-") }) else {
      words = arguments
      return
    }
    let known = known()
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
    let letters = known.map { CChar(truncatingIfNeeded: $0.letter?.value ?? 0) }
    var failure: UsageError?
    var next: Int32 = 0
    while true {
      var value: UnsafePointer<CChar>?
      let constant = unsafe UnsafeRawPointer(names).assumingMemoryBound(to: UnsafePointer<CChar>?.self)
      let found = unsafe clinux_next_option(
        count, vector, constant, letters, takes, Int32(known.count), &next, &value)
      if found == -1 { break }
      guard found >= 0 else {
        // Within a cluster of short options, getopt has not advanced to the next argument yet.
        let before = unsafe Self.text(vector[Int(max(next, 2)) - 1])
        let here = unsafe next < count ? Self.text(vector[Int(next)]) : ""
        let argument = before.utf8.first == UInt8(ascii: "-") && before != "-" ? before : here
        let error =
          found == -2
          ? UsageError(unknownOption: argument)
          : UsageError("option '\(argument)' has a missing or an unexpected value")
        failure = failure ?? error
        continue
      }
      options[known[Int(found)].name] = unsafe value.map { unsafe String(cString: $0) } ?? ""
    }
    words = (Int(next)..<Int(count)).map { unsafe Self.text(vector[$0]) }
    return failure
  }

  private static func text(_ pointer: UnsafeMutablePointer<CChar>?) -> String {
    unsafe pointer.map { unsafe String(cString: $0) } ?? ""
  }

  /// Returns the options as `--help` shows them, with their letters and values, in the same order.
  package static func heads(_ known: [Option]) -> [String] {
    let hasLetters = known.contains { $0.letter != nil }
    return known.map { option in
      let letter = option.letter.map { "-\($0), " } ?? (hasLetters ? "    " : "")
      let value = option.value.map { "=\($0)" } ?? ""
      return "\(letter)--\(option.name)\(value)"
    }
  }

  /// Returns the lines of `--help` that list the options.
  package static func help(_ known: [Option]) -> String {
    let heads = heads(known)
    let width = heads.map(\.count).max() ?? 0
    return zip(heads, known).map { head, option in
      "  \(head)\(String(repeating: " ", count: width - head.count))  \(option.summary)\n"
    }.joined()
  }
}

/// Calls `body` with an array of C strings that ends with a null pointer.
func withCStrings(_ strings: [String], _ body: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> Void) {
  var pointers = unsafe strings.map { unsafe strdup($0) } + [nil]
  defer { for index in unsafe pointers.indices { unsafe free(pointers[index]) } }
  unsafe pointers.withUnsafeMutableBufferPointer { buffer in
    if let start = buffer.baseAddress { unsafe body(start) }
  }
}
