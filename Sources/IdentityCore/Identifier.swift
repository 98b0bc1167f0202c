/// How long an identifier stays the same (protocol, section 3).
package enum Level: String, CaseIterable, Sendable {
  /// Until the app is uninstalled and installed again.
  case installation
  /// Until the system is reset.
  case device
}

/// Where a device identifier came from.
package enum Origin: String, CaseIterable, Sendable {
  /// Derived from the machine-id: it comes back after a purge.
  case machine
  /// Drawn at random, because there was no usable machine-id.
  case random
}

/// An identifier that was handed out, with what is told of it.
package struct Identifier: Equatable, Sendable {
  /// The identifier itself.
  package let value: UUID
  /// When it was made.
  package let created: Timestamp
  /// Where it came from; only a device identifier has this.
  package let origin: Origin?

  /// Puts an identifier together.
  package init(value: UUID, created: Timestamp, origin: Origin? = nil) {
    self.value = value
    self.created = created
    self.origin = origin
  }
}

/// An app that is installed.
package struct App: Equatable, Sendable {
  /// The vendor it belongs to.
  package let vendor: Text
  /// When it was installed.
  package let installed: Timestamp
  /// Its installation identifier, once somebody asked for it.
  package var installation: Identifier?

  /// Puts an app together.
  package init(vendor: Text, installed: Timestamp, installation: Identifier? = nil) {
    self.vendor = vendor
    self.installed = installed
    self.installation = installation
  }
}
