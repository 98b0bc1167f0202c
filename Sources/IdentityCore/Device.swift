/// An entry of the account's device list.
package struct ListedDevice: Equatable, Sendable {
  /// The device identifier.
  package var value: UUID
  /// The display name of the device, if known.
  package var name: Text?
  /// The time the device was last seen, if known.
  package var seen: Timestamp?
  /// The time the device was added to the list.
  package internal(set) var added: Timestamp

  package init(value: UUID, name: Text? = nil, seen: Timestamp? = nil, added: Timestamp) {
    self.value = value
    self.name = name
    self.seen = seen
    self.added = added
  }
}

/// Keyed digests of the values that identify a machine. The key is a secret of the store.
///
/// A digest is nil if the machine does not report the value.
package struct MachineFingerprint: Equatable, Sendable {
  /// The digest of the machine-id.
  package internal(set) var machine: Text?
  /// The digest of the hardware's UUID.
  package internal(set) var hardware: Text?

  package init(machine: Text?, hardware: Text?) {
    self.machine = machine
    self.hardware = hardware
  }
}

/// The stored record of the machine that the daemon runs on.
package struct MachineRecord: Equatable, Sendable {
  /// A machine change after which the identifiers were kept, although another machine may have them too.
  package struct Suspicion: Equatable, Sendable {
    /// The kind of change.
    package let cause: Cause
    /// The time the change was noticed.
    package let since: Timestamp

    package init(cause: Cause, since: Timestamp) {
      self.cause = cause
      self.since = since
    }
  }

  /// The fingerprint as of the last start. A value that the machine did not report then keeps its earlier digest.
  package var fingerprint: MachineFingerprint
  /// The open suspicion, if any. A new value of the shared device identifier clears the suspicion.
  package var suspicion: Suspicion?
  /// The digest of a machine-id that nothing may be derived from again, comparable with `fingerprint.machine`.
  ///
  /// Set for the machine-id of a sealed image, for a machine-id that also exists on other hardware, and after a restore
  /// that left out the identifiers of another device with this machine-id.
  package var spentMachine: Text?

  package init(fingerprint: MachineFingerprint, suspicion: Suspicion? = nil, spentMachine: Text? = nil) {
    self.fingerprint = fingerprint
    self.suspicion = suspicion
    self.spentMachine = spentMachine
  }
}

/// A machine that the daemon ran on before.
///
/// Its identifiers come back into force if the daemon runs on it again.
package struct FormerMachine: Equatable, Sendable {
  /// The number of the record, greater than those of the earlier ones that are remembered.
  package internal(set) var number: Int64
  /// The fingerprint of the machine.
  package internal(set) var fingerprint: MachineFingerprint
  /// The number of the newest identifier in the history when the daemon was last known to run on the machine.
  package internal(set) var lastIdentifier: Int64
  /// The kind of change that ended the use of the machine.
  package internal(set) var cause: Cause
  /// The time the change was noticed.
  package internal(set) var left: Timestamp
  /// Whether an admin knows about the change.
  package var isAcknowledged: Bool

  package init(
    number: Int64, fingerprint: MachineFingerprint, lastIdentifier: Int64, cause: Cause, left: Timestamp,
    isAcknowledged: Bool
  ) {
    self.number = number
    self.fingerprint = fingerprint
    self.lastIdentifier = lastIdentifier
    self.cause = cause
    self.left = left
    self.isAcknowledged = isAcknowledged
  }
}

/// The policy for the stored identifiers after a change of the machine.
package enum MachinePolicy: String, CaseIterable, Sendable {
  /// Replaces the identifiers with new ones.
  case renew
  /// Keeps the identifiers and reports a suspicion.
  case keep
}
