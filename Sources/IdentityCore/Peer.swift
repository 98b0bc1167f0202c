/// What a peer's session hangs on: it is another one when this is.
package enum SessionAnchor: Hashable, Sendable {
  /// The invocation of its service (`INVOCATION_ID`, systemd.exec(5)).
  case invocation(UUID)
  /// The control group of a user's service, by its number: each run has another.
  case controlGroup(UInt64)
  /// A process outside of any service, by its number and its start in clock ticks since boot (proc(5)).
  case process(Int32, start: UInt64)
  /// The same, by its number and the one that the kernel gives to one process in a boot alone
  /// (sd_pidfd_get_inode_id(3)).
  case onlyProcess(Int32, inode: UInt64)
}

/// Who is at the other end of a connection, by the kernel's word at the time it connected.
package struct Peer: Equatable, Sendable {
  /// The app of a manifest that claims the peer, else `unit:NAME.service`, `unit:NAME.service@UID` for a user's service,
  /// else `user:UID` (protocol, section 2).
  package let app: Text
  /// The user, as SO_PEERCRED gave it.
  package let userID: UInt32
  /// The group, as SO_PEERCRED gave it.
  package let groupID: UInt32
  /// The process that connected. It may be gone by now: never use it to decide anything.
  package let processID: Int32
  /// The systemd service that the process ran in, if any.
  package let unit: Text?
  /// The user whose manager runs that service; nil for the system's.
  package let unitOwner: UInt32?
  /// What its session hangs on; nil where that could not be found out.
  package let session: SessionAnchor?
  /// Whether it is root or in `AdminGroup=`.
  package let isAdmin: Bool

  /// Takes over what the kernel and the control group say.
  ///
  /// - Parameters:
  ///   - unit: the service, or nil outside of one.
  ///   - unitOwner: the user whose manager runs that service; nil for the system's.
  ///   - claims: the manifests'. A user's own service has only the claim on its user: the user chooses its name.
  package init(
    userID: UInt32, groupID: UInt32, processID: Int32, unit: Text? = nil, unitOwner: UInt32? = nil,
    session: SessionAnchor? = nil, isAdmin: Bool, claims: AppClaims = AppClaims()
  ) {
    let claimed = claims.app(unit: unitOwner == nil ? unit : nil, userID: userID)
    self.init(
      app: claimed ?? Self.name(unit, of: unitOwner) ?? Text("user:\(userID)"), userID: userID, groupID: groupID,
      processID: processID, unit: unit, unitOwner: unitOwner, session: session, isAdmin: isAdmin)
  }

  /// Takes over what an earlier daemon found out about a connection that it handed over.
  package init(
    app: Text, userID: UInt32, groupID: UInt32, processID: Int32, unit: Text?, unitOwner: UInt32?,
    session: SessionAnchor?, isAdmin: Bool
  ) {
    self.app = app
    self.userID = userID
    self.groupID = groupID
    self.processID = processID
    self.unit = unit
    self.unitOwner = unitOwner
    self.session = session
    self.isAdmin = isAdmin
  }

  /// Who did something, for the history: `unit:NAME` in a service, else `uid:N`.
  package var author: Text { Self.name(unit, of: unitOwner) ?? Text("uid:\(userID)") }

  /// `unit:NAME`, `unit:NAME@UID` for a user's service; nil outside of one.
  private static func name(_ unit: Text?, of owner: UInt32?) -> Text? {
    guard let unit else { return nil }
    return owner.map { Text("unit:\(unit)@\($0)") } ?? Text("unit:\(unit)")
  }
}

extension Text {
  /// Whether this names an app without a manifest. The file name of a manifest cannot have such a form.
  package var isUnclaimedApp: Bool { bytes.contains(UInt8(ascii: ":")) }
}
