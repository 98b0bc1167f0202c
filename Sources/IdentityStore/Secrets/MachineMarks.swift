package import IdentityCore

/// The marks that distinguish one machine from another. Only their hashes are stored, as a ``MachineFingerprint``.
package struct MachineMarks: Sendable {
  /// The machine-id (machine-id(5)) in any stable encoding; nil if the machine has none.
  package var machineID: [UInt8]?
  /// An identifier that the hardware reports, such as its UUID; nil if it reports none.
  package var hardware: [UInt8]?

  /// Takes the marks as read from the machine.
  package init(machineID: [UInt8]? = nil, hardware: [UInt8]? = nil) {
    self.machineID = machineID
    self.hardware = hardware
  }
}

extension Store {
  /// Returns the digest of a machine-id, to compare with those of a ``MachineFingerprint``. Nil without the store's key.
  package func digest(ofMachineID id: UUID) -> Text? {
    let bytes = [id.high, id.low].flatMap { half in
      stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: half >> UInt64($0)) }
    }
    return authenticator.fingerprint(of: MachineMarks(machineID: bytes)).machine
  }
}

extension Authenticator {
  /// Returns the marks hashed with the store's key, as 64 lower-case hexadecimal digits each.
  ///
  /// The hashes for one machine are unrelated between two stores, and between the two kinds of mark.
  func fingerprint(of marks: MachineMarks) -> MachineFingerprint {
    func hashed(_ name: String, _ mark: [UInt8]?) -> Text? {
      mark.map { Text(trusted: hexadecimal(proof(table: "mark of the \(name)", [.blob($0)]))) }
    }
    return MachineFingerprint(
      machine: hashed("machine-id", marks.machineID), hardware: hashed("hardware", marks.hardware))
  }
}
