package import LinuxSystem

/// What the system says of itself (os-release(5)).
package struct OSRelease: Equatable, Sendable {
  /// The variables, by their names; of one that is assigned twice the last value counts.
  private let values: [String: [UInt8]]

  /// Where it stands, most important first; the first file that is there counts alone.
  package static let paths = ["/etc/os-release", "/usr/lib/os-release"]

  /// A file larger than this is none, in bytes.
  private static let limit = 65_536

  /// Reads the file.
  ///
  /// - Returns: nil where there is none.
  package init?(paths: [String] = paths) throws(SystemError) {
    for path in paths {
      guard case .bytes(let bytes) = try ConfigurationAccess.read(path: path, limit: Self.limit) else { continue }
      self.init(bytes)
      return
    }
    return nil
  }

  /// Reads the content of the file: assignments, as a shell has them but without any expansion. What is none is passed
  /// over.
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

  /// The value of a variable; nil where it is not assigned, or empty.
  package subscript(_ name: String) -> [UInt8]? {
    guard let value = values[name], !value.isEmpty else { return nil }
    return value
  }

  /// A value without its quotes: single ones keep what is between them, else a backslash keeps the next byte.
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
      // Between double quotes a backslash stands for itself before any other byte.
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
