package import IdentityCore

/// A JSON object (RFC 8259) under construction. If a name repeats, the first value counts.
package struct JSONObject {
  private var names: Set<String> = []
  private var members: [String] = []

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
    case .number, .boolean, .word, .uuid, .time, .base64, .document: return WordEncoder.quoted(plain)
    }
  }

  /// Returns whether a text is a number in JSON (RFC 8259, section 6).
  ///
  /// Written without a regular expression, because each program would contain the whole engine (see Decisions/0036).
  static func isNumber(_ text: String) -> Bool {
    var rest = text.utf8[...]
    func take(_ characters: String) -> Bool {
      guard let first = rest.first, characters.utf8.contains(first) else { return false }
      rest.removeFirst()
      return true
    }
    func takeDigits() -> Bool {
      guard take("0123456789") else { return false }
      while take("0123456789") {}
      return true
    }
    _ = take("-")
    guard take("0") || takeDigits() else { return false }
    if take("."), !takeDigits() { return false }
    if take("eE") {
      _ = take("-+")
      guard takeDigits() else { return false }
    }
    return rest.isEmpty
  }
}
