/// The lifetime of a stored identifier (identityd-protocol(7), section "IDENTIFIERS").
package enum Level: String, CaseIterable, Sendable {
  /// Lasts until the app is uninstalled.
  case installation
  /// Lasts until the last app of the vendor is uninstalled.
  case vendor
  /// Lasts until the system is reset.
  case device
}

/// The lifetime of a derived identifier, which is computed from a value with that lifetime and not stored.
package enum DerivedLevel: String, Sendable {
  /// Lasts for the session. Each name has another identifier.
  case key
  /// Lasts for the invocation of the peer's service, or outside of a service for the life of the process.
  case session
  /// Lasts until the next boot. Each app has another identifier.
  case boot
}

/// The owner of a stored identifier. At most one identifier is in force for each scope.
package enum Scope: Hashable, Sendable {
  /// The device, as seen by all apps without a device identifier of their own.
  case device
  /// The device, as seen by the apps of one vendor (`DeviceIdentifier=vendor`).
  case deviceOfVendor(Text)
  /// The device, as seen by one app (`DeviceIdentifier=app`).
  case deviceOfApp(Text)
  /// A vendor.
  case vendor(Text)
  /// The installation of an app.
  case installation(Text)

  /// The level of the scope.
  package var level: Level {
    switch self {
    case .device, .deviceOfVendor, .deviceOfApp: .device
    case .vendor: .vendor
    case .installation: .installation
    }
  }

  /// The app of the scope, if the scope belongs to an app.
  package var app: Text? {
    switch self {
    case .deviceOfApp(let app), .installation(let app): app
    case .device, .deviceOfVendor, .vendor: nil
    }
  }

  /// The vendor of the scope, if the scope belongs to a vendor.
  package var vendor: Text? {
    switch self {
    case .deviceOfVendor(let vendor), .vendor(let vendor): vendor
    case .device, .deviceOfApp, .installation: nil
    }
  }

  /// Creates the scope of a level that belongs to this app or vendor. Returns nil if there is no such scope.
  package init?(_ level: Level, app: Text?, vendor: Text?) {
    switch (level, app, vendor) {
    case (.device, nil, nil): self = .device
    case (.device, nil, let vendor?): self = .deviceOfVendor(vendor)
    case (.device, let app?, nil): self = .deviceOfApp(app)
    case (.vendor, nil, let vendor?): self = .vendor(vendor)
    case (.installation, let app?, nil): self = .installation(app)
    default: return nil
    }
  }
}

/// The source of an identifier.
package enum Origin: String, CaseIterable, Sendable {
  /// Derived from the machine-id. The same identifier comes back after a purge.
  case machine
  /// Drawn at random.
  case random
  /// Adopted from an earlier system.
  case migrated
  /// Read from a backup.
  case restored
}

/// The reason why an identifier came into force or ended.
package enum Cause: String, CaseIterable, Sendable {
  case firstUse = "first-use"
  case migrated
  case renewed
  case restored
  case machineChanged = "machine-changed"
  case hardwareChanged = "hardware-changed"
  case machineReturned = "machine-returned"
  case cloned
  case uninstalled
  case sealed

  /// Whether the identifiers before the change come back with the machine.
  var mayReturn: Bool { [.machineChanged, .hardwareChanged, .machineReturned].contains(self) }
}

/// An identifier that was handed out, with its owner, period and cause. All identifiers together form the history.
package struct Identifier: Equatable, Sendable {
  /// The end of an identifier.
  package struct End: Equatable, Sendable {
    /// The time of the end.
    package let time: Timestamp
    /// The reason for the end.
    package let cause: Cause

    package init(time: Timestamp, cause: Cause) {
      self.time = time
      self.cause = cause
    }
  }

  /// The owner of the identifier.
  package internal(set) var scope: Scope
  /// The value of the identifier.
  package internal(set) var value: UUID
  /// The time the identifier came into force.
  package internal(set) var created: Timestamp
  /// The source of the identifier.
  package internal(set) var origin: Origin
  /// The reason why the identifier came into force.
  package internal(set) var cause: Cause
  /// The author of the change, as ``Peer/author`` has it; nil if the daemon acted on its own.
  package internal(set) var author: Text?
  /// The end of the identifier; nil while it is in force.
  package var end: End?

  package init(
    scope: Scope, value: UUID, created: Timestamp, origin: Origin, cause: Cause, author: Text?, end: End? = nil
  ) {
    self.scope = scope
    self.value = value
    self.created = created
    self.origin = origin
    self.cause = cause
    self.author = author
    self.end = end
  }
}
