import IdentityWire

/// A JSON object (RFC 8259) under construction. If a name repeats, the first value counts.
struct JSONObject {
  private var names: Set<String> = []
  private var members: [String] = []

  /// Adds a member.
  ///
  /// - Parameter json: the value, in JSON.
  mutating func add(_ name: String, _ json: String) {
    guard names.insert(name).inserted else { return }
    members.append("\(WordEncoder.quoted(name)):\(json)")
  }

  /// The object in JSON.
  var text: String { "{\(members.joined(separator: ","))}" }

  /// Returns an array of values that are in JSON.
  static func array(_ values: [String]) -> String { "[\(values.joined(separator: ","))]" }

  /// Returns whether a text is a number in JSON (RFC 8259, section 6).
  static func isNumber(_ text: String) -> Bool {
    text.wholeMatch(of: /-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?/) != nil
  }
}

/// Values by name, with the names in the order in which they came first.
struct NamedValues {
  private(set) var names: [String] = []
  private var values: [String: [String]] = [:]

  mutating func add(_ name: String, _ value: String) {
    if values[name] == nil { names.append(name) }
    values[name, default: []].append(value)
  }

  subscript(name: String) -> [String] { values[name] ?? [] }
}
