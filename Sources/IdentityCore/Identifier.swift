/// How long a stored identifier stays the same (protocol, section 3).
package enum Level: String, CaseIterable, Sendable {
  /// Until the app is uninstalled and installed again.
  case installation
  /// Until the last app of the vendor is uninstalled.
  case vendor
  /// Until the system is reset.
  case device
}

/// The levels whose identifiers are computed from what lives that long, and stored nowhere.
package enum DerivedLevel: String, Sendable {
  /// As long as the session, and another for each name.
  case key
  /// While the peer's service invocation lives, or its process outside of a service.
  case session
  /// Until the next boot, and another for each app.
  case boot
}

/// Whose identifier it is: at most one is in force for each of these.
package enum Scope: Hashable, Sendable {
  /// The device's, as all apps see it that have none of their own.
  case device
  /// The device's, as the apps of one vendor see it (`DeviceIdentifier=vendor`).
  case deviceOfVendor(Text)
  /// The device's, as one app sees it (`DeviceIdentifier=app`).
  case deviceOfApp(Text)
  /// A vendor's.
  case vendor(Text)
  /// An app's installation.
  case installation(Text)

  /// The level it belongs to.
  package var level: Level {
    switch self {
    case .device, .deviceOfVendor, .deviceOfApp: .device
    case .vendor: .vendor
    case .installation: .installation
    }
  }

  /// The app that it is bound to, if any.
  package var app: Text? {
    switch self {
    case .deviceOfApp(let app), .installation(let app): app
    case .device, .deviceOfVendor, .vendor: nil
    }
  }

  /// The vendor that it is bound to, if any.
  package var vendor: Text? {
    switch self {
    case .deviceOfVendor(let vendor), .vendor(let vendor): vendor
    case .device, .deviceOfApp, .installation: nil
    }
  }

  /// The scope of a level that is bound to this app or vendor; nil where there is none such.
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

/// Where an identifier came from.
package enum Origin: String, CaseIterable, Sendable {
  /// Derived from the machine-id: it comes back after a purge.
  case machine
  /// Drawn at random.
  case random
  /// Handed in, from an earlier system.
  case migrated
  /// Read from a backup.
  case restored
}

/// Why an identifier came into force, or went out of it.
package enum Cause: String, CaseIterable, Sendable {
  case firstUse = "first-use"
  case migrated
  case renewed
  case restored
  case machineChanged = "machine-changed"
  case hardwareChanged = "hardware-changed"
  case uninstalled
  case sealed
}

/// An identifier that was handed out: whose, since when, until when, and why. Together they are the history.
package struct Identifier: Equatable, Sendable {
  /// How one went out of force.
  package struct End: Equatable, Sendable {
    /// When.
    package let time: Timestamp
    /// Why.
    package let cause: Cause

    /// Puts an end together.
    package init(time: Timestamp, cause: Cause) {
      self.time = time
      self.cause = cause
    }
  }

  /// Whose it is.
  package let scope: Scope
  /// The identifier itself.
  package let value: UUID
  /// When it came into force.
  package let created: Timestamp
  /// Where it came from.
  package let origin: Origin
  /// Why it came into force.
  package let cause: Cause
  /// Who brought it about: `uid:N` or `unit:NAME`; nil for the daemon itself.
  package let author: Text?
  /// When and why it went out of force; nil while it is in force.
  package var end: End?

  /// Puts an identifier together.
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
