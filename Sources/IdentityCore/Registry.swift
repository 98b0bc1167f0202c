/// The state of the daemon as a value, and its rules. It does no I/O and reads no clock and no random source.
package struct Registry: Equatable, Sendable {
  /// The device identifier, once it was handed out.
  package private(set) var device: Identifier?
  /// The installed apps by their ID.
  package private(set) var apps: [Text: App] = [:]

  /// An empty registry: a first boot.
  package init() {}

  /// Takes in a change that was decided, or read back from the store.
  package mutating func apply(_ change: Change) {
    switch change {
    case .appInstalled(let id, let app): apps[id] = app
    case .deviceCreated(let identifier): device = identifier
    case .installationCreated(let id, let identifier): apps[id]?.installation = identifier
    }
  }
}

// MARK: - Answers

extension Registry {
  /// Answers from what is there; nil when the answer takes a change first, which ``decide(_:_:)`` makes.
  package func answer(_ command: RegistryCommand, for peer: Peer) throws(Refusal) -> Reply? {
    switch command {
    case .device:
      guard let device else { return nil }
      return describe(device, level: .device)
    case .installation(let named):
      let id = try app(named: named, by: peer)
      if let app = apps[id], let installation = app.installation {
        return describe(installation, level: .installation, app: id, vendor: app.vendor)
      }
      guard id == peer.app || apps[id] != nil else { throw .notFound("no such app is installed") }
      return nil
    }
  }

  /// Decides what a command changes. The caller makes it durable, then applies it and sends the reply.
  package func decide(_ command: RegistryCommand, _ context: Context) throws(Refusal) -> Decision {
    if let reply = try answer(command, for: context.peer) { return Decision(changes: [], reply: reply) }
    switch command {
    case .device:
      let device = Identifier(
        value: context.machine ?? context.random, created: context.now,
        origin: context.machine == nil ? .random : .machine)
      return Decision(changes: [.deviceCreated(device)], reply: describe(device, level: .device))
    case .installation(let named):
      let id = try app(named: named, by: context.peer)
      let known = apps[id]
      let app = known ?? App(vendor: context.peer.vendor, installed: context.now)
      let installation = Identifier(value: context.random, created: context.now)
      return Decision(
        changes: (known == nil ? [.appInstalled(id, app)] : []) + [.installationCreated(app: id, installation)],
        reply: describe(installation, level: .installation, app: id, vendor: app.vendor))
    }
  }

  private func describe(_ identifier: Identifier, level: Level, app: Text? = nil, vendor: Text? = nil) -> Reply {
    var reply = Reply()
    reply.ok()
    reply.word(.uuid(identifier.value))
    reply.attribute("level", .string(level.rawValue))
    reply.attribute("app", app.map(Reply.Value.text))
    reply.attribute("vendor", vendor.map(Reply.Value.text))
    reply.attribute("created", .time(identifier.created))
    reply.attribute("origin", identifier.origin.map { .string($0.rawValue) })
    return reply
  }
}

// MARK: - Rights

extension Registry {
  /// The app a request is about: the peer's own, or the one that it names, which takes an admin.
  private func app(named: Text?, by peer: Peer) throws(Refusal) -> Text {
    guard let named, named != peer.app else { return peer.app }
    guard peer.isAdmin else {
      throw .denied(app: peer.app, userID: peer.userID, grant: "admin rights, to name another app")
    }
    return named
  }
}
