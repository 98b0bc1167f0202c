import Foundation
import RegexBuilder

/// A comparison of a document's output with real output, in which UUIDs, times and similar values differ each time.
struct DocumentComparison {
  /// A kind of value that may differ, recognized by its form.
  private enum Kind: String {
    case uuid, time, process, version, size
  }

  /// A line with a placeholder for each variable value, and these values.
  private struct Form {
    var text = ""
    var values: [(kind: Kind, value: String)] = []
  }

  /// The real value for each value of the document. A value has the same replacement in all places.
  private var come: [String: String] = [:]
  /// The inverse, for UUIDs: different UUIDs of the document have different replacements.
  private var shown: [String: String] = [:]

  /// Takes UUIDs in the typed commands literally: each is its own replacement.
  init(typed commands: [String]) {
    let uuid = /[0-9A-Fa-f]{8}(-?)[0-9A-Fa-f]{4}\1[0-9A-Fa-f]{4}\1[0-9A-Fa-f]{4}\1[0-9A-Fa-f]{12}/
    for command in commands {
      for match in command.matches(of: uuid) {
        guard let value = UUID(uuidString: Self.hyphenated(match.0))?.uuidString.lowercased() else { continue }
        come[value] = value
        shown[value] = value
      }
    }
  }

  private static func hyphenated(_ text: Substring) -> String {
    var digits = text.filter { $0 != "-" }
    for place in [8, 13, 18, 23] { digits.insert("-", at: digits.index(digits.startIndex, offsetBy: place)) }
    return String(digits)
  }

  private static func form(_ line: String) -> Form {
    var form = Form()
    var rest = line[...]
    let uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/
    let time = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/
    let other = /(PID: |pid=)\d+|identityd \d+\.\d+\.\d+|^\d{4,}$/
    let variable = Regex {
      ChoiceOf {
        uuid
        time
        other
      }
    }
    while let match = rest.firstMatch(of: variable) {
      let value = String(rest[match.range])
      let kind: Kind =
        value.hasSuffix("Z")
        ? .time
        : value.lowercased().hasPrefix("pid")
          ? .process
          : value.hasPrefix("identityd ") ? .version : value.allSatisfy(\.isNumber) ? .size : .uuid
      form.text += rest[..<match.range.lowerBound] + "<\(kind.rawValue)>"
      form.values.append((kind, value))
      rest = rest[match.range.upperBound...]
    }
    form.text += rest
    return form
  }

  /// Returns whether all lines are equal except for variable values. If so, remembers the replacements of the values.
  mutating func take(_ expected: [String], _ got: [String]) -> Bool {
    guard expected.count == got.count else { return false }
    var next = self
    for (line, other) in zip(expected, got) where !next.take(line, other) { return false }
    self = next
    return true
  }

  private mutating func take(_ expected: String, _ got: String) -> Bool {
    let (wanted, given) = (Self.form(expected), Self.form(got))
    guard wanted.text == given.text else { return false }
    for (old, new) in zip(wanted.values, given.values) where old.kind == .uuid || old.kind == .time {
      guard come[old.value, default: new.value] == new.value else { return false }
      come[old.value] = new.value
      guard old.kind == .uuid else { continue }
      guard shown[new.value, default: old.value] == old.value else { return false }
      shown[new.value] = old.value
    }
    return true
  }

  /// Returns a line as the document would show it, with the document's UUIDs in place of their replacements.
  func asShown(_ line: String) -> String {
    shown.reduce(line) { $0.replacing($1.key, with: $1.value) }
  }
}
