package import IdentityCore

/// A JSON object (RFC 8259) under construction. If a name repeats, the first value counts.
package struct JSONObject {
  private var names: Set<String> = []
  private var members: [String] = []

  /// Creates an empty object.
  package init() {}

  /// Adds a member.
  ///
  /// - Parameter json: the value, in JSON.
  package mutating func add(_ name: String, _ json: String) {
    guard names.insert(name).inserted else { return }
    members.append("\(WordEncoder.quoted(name)):\(json)")
  }

  /// The object in JSON.
  package var text: String { "{\(members.joined(separator: ","))}" }

  /// Returns an array of values that are in JSON.
  package static func array(_ values: [String]) -> String { "[\(values.joined(separator: ","))]" }
}

extension Verb.Field.Kind {
  /// Returns a value in JSON. A text that does not have the form of the kind becomes a string.
  package func json(of value: Text) -> String {
    let plain = "\(value)"
    switch self {
    case .number where Self.isNumber(plain): return plain
    case .boolean where plain == "yes": return "true"
    case .boolean where plain == "no": return "false"
    case .list: return JSONObject.array(plain.split(separator: ",").map { WordEncoder.quoted(String($0)) })
    case .number, .boolean, .word, .uuid, .time, .base64: return WordEncoder.quoted(plain)
    }
  }

  /// Returns whether a text is a number in JSON (RFC 8259, section 6).
  private static func isNumber(_ text: String) -> Bool {
    text.wholeMatch(of: /-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?/) != nil
  }
}
