import IdentityCore
import IdentityWire

/// A file in which an earlier system kept an identifier: a UUID alone, or lines `NAME=value` or `NAME: value`.
///
/// Blank lines and comments, which begin with `#`, are ignored. A value may be in quotes.
package struct FieldFile {
  /// The reason why a file yields no UUID.
  package enum Failure: Error, Equatable, Sendable {
    /// The file has no field of that name.
    case missing(field: String)
    /// The file has several fields of that name.
    case ambiguous(field: String, count: Int)
    /// The file has fields and none was named. The names are those of fields that hold a UUID.
    case notChosen([String])
    /// The value is not a UUID; `field` is nil if no field was named.
    case notUUID(field: String?)
  }

  private struct Field {
    let name: [UInt8]
    let value: [UInt8]
  }

  private let lines: [ArraySlice<UInt8>]

  /// Reads the content of a file.
  package init(_ bytes: [UInt8]) {
    // A byte order mark is not part of the text (RFC 3629, section 6).
    let mark: [UInt8] = [0xef, 0xbb, 0xbf]
    let text = bytes.starts(with: mark) ? bytes.dropFirst(mark.count) : bytes[...]
    lines = text.split(separator: UInt8(ascii: "\n")).map { $0.trimmed }.filter {
      !$0.isEmpty && $0.first != UInt8(ascii: "#")
    }
  }

  /// Returns the UUID as written in the file.
  ///
  /// - Parameter name: The name of the field, which is case-sensitive; nil if the file holds only a UUID.
  package func uuid(of name: String?) throws(Failure) -> String {
    guard let name else { return try onlyUUID() }
    let found = fields.filter { name.utf8.elementsEqual($0.name) }
    guard let field = found.first else { throw .missing(field: name) }
    guard found.count == 1 else { throw .ambiguous(field: name, count: found.count) }
    guard isUUID(field.value) else { throw .notUUID(field: name) }
    return String(decoding: field.value, as: UTF8.self)
  }

  private func onlyUUID() throws(Failure) -> String {
    if lines.count == 1, isUUID(Array(lines[0])) { return String(decoding: lines[0], as: UTF8.self) }
    let fields = fields
    guard !fields.isEmpty else { throw .notUUID(field: nil) }
    var names: [String] = []
    for field in fields where isUUID(field.value) {
      let name = String(decoding: field.name, as: UTF8.self)
      if !names.contains(where: { $0.utf8.elementsEqual(name.utf8) }) { names.append(name) }
    }
    throw .notChosen(names)
  }

  private var fields: [Field] {
    lines.compactMap { line in
      guard let mark = line.firstIndex(where: { $0 == UInt8(ascii: "=") || $0 == UInt8(ascii: ":") }) else {
        return nil
      }
      let name = line[..<mark].trimmed
      return name.isEmpty ? nil : Field(name: Array(name), value: Self.value(line[(mark + 1)...].trimmed))
    }
  }

  private static func value(_ text: ArraySlice<UInt8>) -> [UInt8] {
    if let quote = text.first, quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'"),
      let end = text.dropFirst().firstIndex(of: quote)
    {
      let rest = text[(end + 1)...].trimmed
      if rest.isEmpty || rest.first == UInt8(ascii: "#") { return Array(text[(text.startIndex + 1)..<end]) }
    }
    // A `#` begins a comment only after white space, or at the start of the value.
    let comment = text.indices.first { index in
      text[index] == UInt8(ascii: "#") && (index == text.startIndex || text[index - 1].isWhiteSpace)
    }
    return Array(text[..<(comment ?? text.endIndex)].trimmed)
  }

  private func isUUID(_ bytes: [UInt8]) -> Bool { UUID(parsing: bytes.span) != nil }
}

extension FieldFile.Failure {
  /// Returns a message for people without the values of the file, which may be confidential.
  package func text(file: String) -> String {
    let file = WordEncoder.quoted(file)
    return switch self {
    case .missing(let field): "\(file) has no field \(WordEncoder.quoted(field))"
    case .ambiguous(let field, let count):
      "\(file) has \(count) fields \(WordEncoder.quoted(field)), so the value is ambiguous"
    case .notChosen(let names) where names.isEmpty: "no field of \(file) holds a UUID"
    case .notChosen(let names):
      "\(file) holds more than a UUID; name one field with --field: \(names.map(WordEncoder.quoted).joined(separator: ", "))"
    case .notUUID(let field?): "the field \(WordEncoder.quoted(field)) of \(file) is not a UUID"
    case .notUUID(nil): "\(file) does not hold a UUID"
    }
  }
}

extension UInt8 {
  fileprivate var isWhiteSpace: Bool { self == UInt8(ascii: " ") || (0x09...0x0d).contains(self) }
}

extension ArraySlice<UInt8> {
  /// The slice without leading and trailing white space.
  fileprivate var trimmed: ArraySlice<UInt8> {
    guard let first = firstIndex(where: { !$0.isWhiteSpace }), let last = lastIndex(where: { !$0.isWhiteSpace }) else {
      return []
    }
    return self[first...last]
  }
}
