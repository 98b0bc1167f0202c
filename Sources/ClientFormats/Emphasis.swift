import IdentityCore
import IdentityWire

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
    case (StatusRow.store.name, "ok"), ("state", "valid"): .green
    case (StatusRow.store.name, _), (StatusRow.storeReason.name, _), (StatusRow.unproven.name, _),
      (StatusRow.masterKey.name, "unavailable"), (StatusRow.masterKeyReason.name, _), ("state", "invalid"):
      .red
    case (StatusRow.suspect.name, _), (StatusRow.machineChange.name, _), (StatusRow.sealed.name, "yes"),
      (StatusRow.manifestFault.name, _), (StatusRow.manifestFaults.name, _), (StatusRow.configurationReason.name, _),
      (StatusRow.storeSource.name, _):
      .yellow
    case ("self", "yes"): .bold
    default: nil
    }
  }
}
