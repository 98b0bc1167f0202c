package import LinuxSystem

/// The identification of the operating system (os-release(5)).
package struct OSRelease: Equatable, Sendable {
  /// A reason why the value of a variable is uncertain.
  package enum Fault: Error, Equatable {
    /// The file begins with a byte order mark, which is part of its first line for every reader.
    case byteOrderMark
    /// The value of the variable begins with a quotation mark and does not end with it.
    case openQuote(String)
    /// The value of the variable has more bytes than the limit.
    case tooLong(String, limit: Int)
    /// The value of the variable is not UTF-8, or has a NUL.
    case notText(String)
  }

  /// The values of the variables by name. The last assignment to a variable counts.
  private let values: [String: Value]
  private let hasByteOrderMark: Bool

  private struct Value: Equatable {
    var bytes: [UInt8]
    var hasOpenQuote = false
  }

  /// The paths of the file in descending order of precedence.
  package static let paths = ["/etc/os-release", "/usr/lib/os-release"]

  /// The maximum length of the file in bytes.
  private static let limit = 65_536

  /// Reads the first file that exists and is not masked; nil if there is none.
  ///
  /// - Throws: The error of reading the file.
  package init?(paths: [String] = paths) throws(SystemError) {
    for path in paths {
      guard case .bytes(let bytes) = try ConfigurationAccess.read(path: path, limit: Self.limit) else { continue }
      self.init(bytes)
      return
    }
    return nil
  }

  /// Parses the content of the file: shell assignments without any expansion. Other lines are skipped.
  package init(_ bytes: [UInt8]) {
    var values: [String: Value] = [:]
    for line in bytes.split(separator: UInt8(ascii: "\n")) {
      let line = line.drop(while: \.isBlank)
      guard line.first != UInt8(ascii: "#"), let mark = line.firstIndex(of: UInt8(ascii: "=")) else { continue }
      let name = String(decoding: line[..<mark], as: UTF8.self)
      values[name] = Self.value(line[(mark + 1)...])
    }
    self.values = values
    hasByteOrderMark = bytes.starts(with: [0xef, 0xbb, 0xbf])
  }

  /// Returns the value of a variable; nil if the variable is missing or empty.
  ///
  /// - Parameter limit: The maximum length of the value in bytes.
  package func value(of name: String, limit: Int) throws(Fault) -> String? {
    guard !hasByteOrderMark else { throw .byteOrderMark }
    guard let value = values[name] else { return nil }
    guard !value.hasOpenQuote else { throw .openQuote(name) }
    guard value.bytes.count <= limit else { throw .tooLong(name, limit: limit) }
    guard !value.bytes.contains(0), let text = String(validating: value.bytes, as: UTF8.self) else {
      throw .notText(name)
    }
    return text.isEmpty ? nil : text
  }

  /// Removes the quotation marks and backslashes of a value, and the text behind a closing mark. Between single marks a
  /// backslash is literal; else it quotes the next byte.
  private static func value(_ text: ArraySlice<UInt8>) -> Value {
    var text = text
    while text.last?.isBlank == true { text.removeLast() }
    let (single, double) = (UInt8(ascii: "'"), UInt8(ascii: "\""))
    let quote = text.first.flatMap { $0 == single || $0 == double ? $0 : nil }
    if quote != nil { text = text.dropFirst() }
    if quote == single {
      let end = text.firstIndex(of: single)
      return Value(bytes: Array(end.map { text[..<$0] } ?? text), hasOpenQuote: end == nil)
    }
    var value = Value(bytes: [], hasOpenQuote: quote != nil)
    var isKept = false
    for byte in text {
      if byte == UInt8(ascii: "\\"), !isKept {
        isKept = true
        continue
      }
      if !isKept, byte == quote {
        value.hasOpenQuote = false
        break
      }
      // Between double quotes a backslash is literal before any other byte.
      if isKept, quote == double, !"\"$`\\".utf8.contains(byte) { value.bytes.append(UInt8(ascii: "\\")) }
      value.bytes.append(byte)
      isKept = false
    }
    return value
  }
}

extension OSRelease.Fault: CustomStringConvertible {
  package var description: String {
    switch self {
    case .byteOrderMark: "os-release begins with a byte order mark"
    case .openQuote(let name): "the value of \(name) in os-release has no closing quotation mark"
    case .tooLong(let name, let limit): "the value of \(name) in os-release is longer than \(limit) bytes"
    case .notText(let name): "the value of \(name) in os-release is not UTF-8 text"
    }
  }
}

extension UInt8 {
  fileprivate var isBlank: Bool {
    self == UInt8(ascii: " ") || self == UInt8(ascii: "\t") || self == UInt8(ascii: "\r")
  }
}
