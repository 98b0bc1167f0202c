import IdentityCore

/// An emphasis of text on a terminal, with its code of ECMA-48, section 8.3.117 (SGR), which every terminal supports.
enum Emphasis: Int {
  case bold = 1
  case faint = 2
  case red = 31
  case green = 32
  case yellow = 33
  case cyan = 36

  /// Returns a text with the emphasis. Unchanged if the text is empty or the terminal has no colours.
  func applied(to text: String, isColoured: Bool) -> String {
    isColoured && !text.isEmpty ? "\u{1b}[\(rawValue)m\(text)\u{1b}[0m" : text
  }

  /// Returns the emphasis of a value that a person has to notice; nil for every other value.
  static func of(_ name: Text, _ value: Text) -> Emphasis? {
    switch ("\(name)", "\(value)") {
    case ("store", "ok"), ("state", "valid"): .green
    case ("store", _), ("state", "invalid"), ("key", "unavailable"), ("store-reason", _), ("key-reason", _),
      ("store-unproven", _):
      .red
    case ("suspect", _), ("machine-change", _), ("sealed", "yes"), ("manifest-fault", _), ("manifest-faults", _),
      ("configuration-reason", _), ("store-source", _):
      .yellow
    case ("self", "yes"): .bold
    default: nil
    }
  }
}
