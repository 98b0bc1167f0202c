import IdentityCore
import IdentityWire
import LinuxSystem

extension Emphasis {
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
