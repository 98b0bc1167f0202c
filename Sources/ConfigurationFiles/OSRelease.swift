package import LinuxSystem

/// The identification of the operating system (os-release(5)).
package struct OSRelease: Equatable, Sendable {
  /// The values of the variables by name. The last assignment to a variable counts.
  private let values: [String: [UInt8]]

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
    var values: [String: [UInt8]] = [:]
    for line in bytes.split(separator: UInt8(ascii: "\n")) {
      let line = line.drop(while: \.isBlank)
      guard line.first != UInt8(ascii: "#"), let mark = line.firstIndex(of: UInt8(ascii: "=")) else { continue }
      let name = String(decoding: line[..<mark], as: UTF8.self)
      values[name] = Self.value(line[(mark + 1)...])
    }
    self.values = values
  }

  /// The value of a variable; nil if the variable is missing or empty.
  package subscript(_ name: String) -> [UInt8]? {
    guard let value = values[name], !value.isEmpty else { return nil }
    return value
  }

  /// Removes the quotes and backslashes of a value. Between single quotes a backslash is literal; else it quotes
  /// the next byte.
  private static func value(_ text: ArraySlice<UInt8>) -> [UInt8] {
    var text = text
    while text.last?.isBlank == true { text.removeLast() }
    let (single, double) = (UInt8(ascii: "'"), UInt8(ascii: "\""))
    let quote = text.first.flatMap { $0 == single || $0 == double ? $0 : nil }
    if let quote, text.count > 1, text.last == quote { text = text.dropFirst().dropLast() }
    guard quote != single else { return Array(text) }
    var value: [UInt8] = []
    var isKept = false
    for byte in text {
      if byte == UInt8(ascii: "\\"), !isKept {
        isKept = true
        continue
      }
      // Between double quotes a backslash is literal before any other byte.
      if isKept, quote == double, !"\"$`\\".utf8.contains(byte) { value.append(UInt8(ascii: "\\")) }
      value.append(byte)
      isKept = false
    }
    return value
  }
}

extension UInt8 {
  fileprivate var isBlank: Bool {
    self == UInt8(ascii: " ") || self == UInt8(ascii: "\t") || self == UInt8(ascii: "\r")
  }
}
