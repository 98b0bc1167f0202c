import FleetWire
import IdentityCore

/// Another device, as the admins are told of it.
struct NamedDevice: CustomStringConvertible {
  let identifier: UUID
  let name: String

  /// The device that a message is about.
  init(of message: SignedMessage) {
    identifier = message.body.subject
    name = message.body.fields[.name].map { "\(Text(trusted: $0))" } ?? "?"
  }

  /// Both, as a row of `fleet status` has them.
  var description: String { "\(identifier) \(name)" }
}
