import IdentityCore
import IdentityStore
import IdentityWire
import LinuxSystem
import Systemd

extension Server {
  /// `status`: a row a value. Where things are is told to admins, and to whoever runs the daemon as its own user.
  func status(for peer: Peer) -> Reply {
    var reply = Reply()
    let uptime = (Clock.monotonicMicroseconds - startedMonotonic) / 1_000_000
    let rows: [(String, Reply.Value)] = [
      ("version", .string(Version.program)),
      ("protocol", .number(Version.lineProtocol)),
      ("pid", .number(Int64(ProcessGuard.processID))),
      ("started", .time(started)),
      ("uptime", .number(Int64(clamping: uptime))),
      ("boot", lifetimes.boot.map(Reply.Value.uuid) ?? .string("unknown")),
      ("socket", .string(socketPath)),
      ("store", .string(condition.name)),
      ("connections", .number(Int64(connections.count))),
      ("subscribers", .number(Int64(connections.subscribers))),
      ("last-event", .number(events.last)),
      ("kept-events", .number(events.last - events.oldest)),
      ("apps", .number(Int64(registry.apps.count))),
      ("manifests", .number(Int64(registry.apps.count - registry.apps.withoutManifest))),
      ("installations", .number(Int64(registry.scopes.count { $0.level == .installation }))),
      ("vendors", .number(Int64(registry.scopes.count { $0.level == .vendor }))),
      ("devices", .number(Int64(registry.devices.count))),
      ("device-origin", .string(registry[.device]?.origin.rawValue ?? "none")),
      ("items", .number(Int64(registry.items.total.items))),
      ("item-bytes", .number(Int64(registry.items.total.bytes))),
      ("tokens", .number(Int64(registry.tokens.count))),
      ("key", .string(registry.itemFault == nil ? keySource?.rawValue ?? "unavailable" : "unavailable")),
      ("fleet", .string("none")),
    ]
    for (name, value) in rows { append(name, value, to: &reply) }
    if let suspicion = registry.machine?.suspicion {
      append("suspect", .string("\(suspicion.cause.rawValue) \(suspicion.since)"), to: &reply)
    }
    if let fault = registry.itemFault { append("key-reason", .string(fault), to: &reply) }
    if registry.isSealed { append("sealed", .yesOrNo(true), to: &reply) }
    if let refusal = condition.refusal { append("store-reason", .string(refusal.text), to: &reply) }
    for fault in manifestFaults.prefix(Self.shownFaults) { append("manifest-fault", .string(fault), to: &reply) }
    if manifestFaults.count > Self.shownFaults {
      append("manifest-faults", .number(Int64(manifestFaults.count)), to: &reply)
    }
    if peer.isAdmin || peer.userID == Accounts.ownUserID {
      append("state-directory", .string(stateDirectory), to: &reply)
      for folder in settings.appDirectories { append("manifest-folder", .string(folder), to: &reply) }
    }
    reply.ok()
    return reply
  }

  /// All of them are in the journal.
  private static var shownFaults: Int { 16 }

  private func append(_ name: String, _ value: Reply.Value, to reply: inout Reply) {
    reply.row()
    reply.attribute(name, value)
  }
}
