/// A device of the account, as the list of devices has it.
package struct ListedDevice: Equatable, Sendable {
  /// Its device identifier.
  package var value: UUID
  /// What people call it.
  package var name: Text?
  /// When it was last heard of.
  package var seen: Timestamp?
  /// When it came into the list.
  package let added: Timestamp

  /// Puts a device together.
  package init(value: UUID, name: Text? = nil, seen: Timestamp? = nil, added: Timestamp) {
    self.value = value
    self.name = name
    self.seen = seen
    self.added = added
  }
}

/// Marks of the machine, each hashed with a secret of the store; nil for what the machine does not tell.
package struct MachineFingerprint: Equatable, Sendable {
  /// Of the machine-id.
  package let machine: Text?
  /// Of the hardware's UUID.
  package let hardware: Text?

  /// Puts a fingerprint together.
  package init(machine: Text?, hardware: Text?) {
    self.machine = machine
    self.hardware = hardware
  }
}

/// What the daemon remembers of the machine under it.
package struct MachineRecord: Equatable, Sendable {
  /// A doubt that was answered by keeping the identifiers.
  package struct Suspicion: Equatable, Sendable {
    /// What changed.
    package let cause: Cause
    /// When that was noticed.
    package let since: Timestamp

    /// Puts a suspicion together.
    package init(cause: Cause, since: Timestamp) {
      self.cause = cause
      self.since = since
    }
  }

  /// The machine at the last start.
  package var fingerprint: MachineFingerprint
  /// What stands in doubt, until the device identifier is another one.
  package var suspicion: Suspicion?
  /// The machine-id whose identifiers must not come again, as `fingerprint.machine` has it: a sealed image's own.
  package var spentMachine: Text?

  /// Puts a record together.
  package init(fingerprint: MachineFingerprint, suspicion: Suspicion? = nil, spentMachine: Text? = nil) {
    self.fingerprint = fingerprint
    self.suspicion = suspicion
    self.spentMachine = spentMachine
  }
}

/// What becomes of the identifiers when the machine under them is another one.
package enum MachinePolicy: String, CaseIterable, Sendable {
  /// They are made anew.
  case renew
  /// They stay, and the doubt is told.
  case keep
}
