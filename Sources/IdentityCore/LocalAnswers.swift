/// The versions of the program and of the protocol.
package enum Version {
  /// The version of the daemon, its client and its packages, which are released together.
  package static let program = "0.2.0"
  /// The date of the release. A clock that is behind the date is wrong.
  package static let released = "2026-11-24"
  /// The version of the line protocol, as reported by `hello`.
  package static let lineProtocol: Int64 = 1
}

// Answers that need neither the registry nor the state of the daemon.
extension Reply {
  /// The answer to `hello`: the name and version of the daemon, and the version of the protocol.
  package static var hello: Reply {
    var reply = Reply()
    reply.ok()
    reply.word(.string("identityd"))
    reply.word(.string(Version.program))
    reply.attribute("protocol", .number(Version.lineProtocol))
    return reply
  }

  /// Returns the answer to `whoami`: the peer as the daemon attested it.
  ///
  /// - Parameters:
  ///   - groups: the access groups that the app may use besides its own.
  ///   - rights: the rights that the manifest of the app gives.
  package static func whoami(_ peer: Peer, vendor: Text, groups: [Text], rights: Set<Right>) -> Reply {
    var reply = Reply()
    reply.ok()
    reply.word(.text(peer.app))
    reply.attribute("uid", .number(Int64(peer.userID)))
    reply.attribute("gid", .number(Int64(peer.groupID)))
    reply.attribute("pid", .number(Int64(peer.processID)))
    reply.attribute("unit", peer.place.unit.map(Reply.Value.text))
    reply.attribute("container", peer.place.containerName.map(Reply.Value.text))
    reply.attribute("vendor", .text(vendor))
    reply.grants(groups: groups, rights: rights)
    reply.attribute("admin", .yesOrNo(peer.isAdmin))
    return reply
  }

  /// Adds the access groups and the rights that a manifest gives, each separated by commas.
  mutating func grants(groups: [Text], rights: Set<Right>) {
    let list = groups.map(\.description).joined(separator: ",")
    attribute("groups", groups.isEmpty ? nil : .string(list))
    let names = Right.allCases.filter(rights.contains).map(\.rawValue).joined(separator: ",")
    attribute("rights", rights.isEmpty ? nil : .string(names))
  }

  /// Returns the answer to `check VALUE`: whether the text is a UUID, and its canonical form.
  ///
  /// The all-zero and all-one UUIDs are valid here.
  package static func check(_ text: Text) -> Reply {
    var reply = Reply()
    reply.ok()
    if let uuid = UUID(text) {
      reply.word(.string("valid"))
      reply.word(.uuid(uuid))
    } else {
      reply.word(.string("invalid"))
    }
    return reply
  }

  /// Returns the answer to `version compare A B`: the order of the first version relative to the second. Builds have no
  /// order, so equal versions with other builds are different.
  package static func compare(_ left: Release, _ right: Release, _ order: VersionOrder) -> Reply {
    let outcome = order.compare(left.version, right.version)
    return .done(.string(outcome == .equal && left.build != right.build ? "different" : outcome.rawValue))
  }
}
