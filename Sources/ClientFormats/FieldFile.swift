import IdentityCore
import IdentityWire

/// A file in which an earlier system kept an identifier: a UUID alone, lines `NAME=value` or `NAME: value`, a JSON object,
/// or preferences in XML.
///
/// Of lines, blank ones and comments, which begin with `#`, are ignored. A value may be in quotes. A UUID may have
/// `urn:uuid:` or braces around it.
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
  /// The fields of a document in JSON or XML; nil for lines.
  private let members: [Field]?

  /// Reads the content of a file.
  package init(_ bytes: [UInt8]) {
    // A byte order mark is not part of the text (RFC 3629, section 6).
    let mark: [UInt8] = [0xef, 0xbb, 0xbf]
    let text = bytes.starts(with: mark) ? bytes.dropFirst(mark.count) : bytes[...]
    lines = text.split(separator: UInt8(ascii: "\n")).map { $0.trimmed }.filter {
      !$0.isEmpty && $0.first != UInt8(ascii: "#")
    }
    members =
      switch text.trimmed.first {
      case UInt8(ascii: "{") where UUIDFormat.canonical(String(decoding: text.trimmed, as: UTF8.self)) == nil:
        DocumentFields.ofJSON(text).map { Field(name: $0.name, value: $0.value) }
      case UInt8(ascii: "<"): DocumentFields.ofXML(text).map { Field(name: $0.name, value: $0.value) }
      default: nil
      }
  }

  /// Returns the UUID in a form that the daemon takes.
  ///
  /// - Parameter name: The name of the field, which is case-sensitive; nil if the file holds only a UUID.
  package func uuid(of name: String?) throws(Failure) -> String {
    guard let name else { return try onlyUUID() }
    let found = fields.filter { name.utf8.elementsEqual($0.name) }
    guard let field = found.first else { throw .missing(field: name) }
    guard found.count == 1 else { throw .ambiguous(field: name, count: found.count) }
    guard let value = Self.uuid(field.value) else { throw .notUUID(field: name) }
    return value
  }

  private func onlyUUID() throws(Failure) -> String {
    if lines.count == 1, let value = Self.uuid(Array(lines[0])) { return value }
    let fields = fields
    guard !fields.isEmpty else { throw .notUUID(field: nil) }
    var names: [String] = []
    for field in fields where Self.uuid(field.value) != nil {
      let name = String(decoding: field.name, as: UTF8.self)
      if !names.contains(where: { $0.utf8.elementsEqual(name.utf8) }) { names.append(name) }
    }
    throw .notChosen(names)
  }

  private var fields: [Field] {
    members
      ?? lines.compactMap { line in
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

  /// Returns the UUID that is all of a value: as written if the daemon takes this form, else in the daemon's form.
  private static func uuid(_ bytes: [UInt8]) -> String? {
    let text = String(decoding: bytes, as: UTF8.self)
    return UUID(parsing: bytes.span) != nil ? text : UUIDFormat.canonical(text)
  }
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
  var isWhiteSpace: Bool { self == UInt8(ascii: " ") || (0x09...0x0d).contains(self) }
}

extension ArraySlice<UInt8> {
  /// The slice without leading and trailing white space.
  var trimmed: ArraySlice<UInt8> {
    guard let first = firstIndex(where: { !$0.isWhiteSpace }), let last = lastIndex(where: { !$0.isWhiteSpace }) else {
      return []
    }
    return self[first...last]
  }
}
