/// One thing that happened to the registry: stored, then applied to the committed copy.
package enum Change: Equatable, Sendable {
  /// An app without a manifest was seen for the first time.
  case appInstalled(Text, App)
  /// The device got its identifier.
  case deviceCreated(Identifier)
  /// An app got its installation identifier.
  case installationCreated(app: Text, Identifier)
}

/// What a decision may need from outside: the registry itself reads no clock, no random source, no file.
package struct Context: Equatable, Sendable {
  /// Who asks.
  package let peer: Peer
  /// The clock's time.
  package let now: Timestamp
  /// A fresh random version 4 UUID, to be used once.
  package let random: UUID
  /// The identifier that the machine-id gives, or nil when there is no usable machine-id.
  package let machine: UUID?

  /// Puts a context together.
  package init(peer: Peer, now: Timestamp, random: UUID, machine: UUID?) {
    self.peer = peer
    self.now = now
    self.random = random
    self.machine = machine
  }
}

/// What comes of a command: the changes it takes, and the answer once they are on disk.
package struct Decision: Equatable, Sendable {
  /// In order; empty when nothing has to change.
  package let changes: [Change]
  /// To be sent after the changes are durable.
  package let reply: Reply

  /// Puts a decision together.
  package init(changes: [Change], reply: Reply) {
    self.changes = changes
    self.reply = reply
  }
}
