/// The program's version, and the protocol's.
package enum Version {
  /// Of the daemon, its client and its packages: they are released together.
  package static let program = "0.1.0"
  /// The day of that release: a clock that is behind it is wrong.
  package static let released = "2026-11-21"
  /// Of the line protocol: `hello` says it.
  package static let lineProtocol: Int64 = 1
}

// The answers that need neither the registry nor the daemon's own state.
extension Reply {
  /// `hello`: which daemon this is, and which protocol it speaks.
  package static var hello: Reply {
    var reply = Reply()
    reply.ok()
    reply.word(.string("identityd"))
    reply.word(.string(Version.program))
    reply.attribute("protocol", .number(Version.lineProtocol))
    return reply
  }

  /// `whoami`: the peer as the daemon sees it.
  ///
  /// - Parameter groups: the access groups it may use besides its own.
  package static func whoami(_ peer: Peer, vendor: Text, groups: [Text]) -> Reply {
    var reply = Reply()
    reply.ok()
    reply.word(.text(peer.app))
    reply.attribute("uid", .number(Int64(peer.userID)))
    reply.attribute("gid", .number(Int64(peer.groupID)))
    reply.attribute("pid", .number(Int64(peer.processID)))
    reply.attribute("unit", peer.place.unit.map(Reply.Value.text))
    reply.attribute("container", peer.place.containerName.map(Reply.Value.text))
    reply.attribute("vendor", .text(vendor))
    let list = groups.map(\.description).joined(separator: ",")
    reply.attribute("groups", groups.isEmpty ? nil : .string(list))
    reply.attribute("admin", .yesOrNo(peer.isAdmin))
    return reply
  }

  /// `check VALUE`: whether that is a UUID, and its canonical form. The all-zero and all-one UUID are valid here.
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

  /// `version compare A B`: how the first stands to the second.
  package static func compare(_ left: Text, _ right: Text, _ order: VersionOrder) -> Reply {
    .done(.string(order.compare(left, right).rawValue))
  }
}
