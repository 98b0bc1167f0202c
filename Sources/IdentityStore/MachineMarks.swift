import IdentityCore

/// What tells one machine from another, as the machine has it. It is never stored: ``MachineFingerprint`` is.
package struct MachineMarks: Sendable {
  /// The machine-id (machine-id(5)), in any form that stays the same; nil where there is none.
  package var machineID: [UInt8]?
  /// What the hardware calls itself, such as its UUID; nil where it does not.
  package var hardware: [UInt8]?

  /// Takes the marks as they were read.
  package init(machineID: [UInt8]? = nil, hardware: [UInt8]? = nil) {
    self.machineID = machineID
    self.hardware = hardware
  }
}

extension Authenticator {
  /// The marks hashed with the store's key, as 64 lower-case hexadecimal digits each: two stores, or two kinds of mark,
  /// have nothing in common for the same machine.
  func fingerprint(of marks: MachineMarks) -> MachineFingerprint {
    func hashed(_ name: String, _ mark: [UInt8]?) -> Text? {
      mark.map { Text(trusted: hexadecimal(proof(table: "mark of the \(name)", [.blob($0)]))) }
    }
    return MachineFingerprint(
      machine: hashed("machine-id", marks.machineID), hardware: hashed("hardware", marks.hardware))
  }
}
