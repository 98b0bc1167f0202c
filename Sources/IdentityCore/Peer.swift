/// Identifies a session. A new anchor means a new session.
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

/// The control group and the namespaces that a process runs in, by the kernel's word.
package struct PeerPlace: Equatable, Sendable {
  /// The systemd service, if any.
  package var unit: Text?
  /// The container in whose scope it is, by its ID or name.
  package var container: Text?
  /// The user whose manager runs that service or container; nil for the system's.
  package var owner: UInt32?
  /// Whether it is in a PID namespace or a user namespace other than the daemon's.
  package var hasOtherNamespaces = false

  /// Whether it is in a container's scope or in such a namespace.
  package var isContained: Bool { container != nil || hasOtherNamespaces }

  /// Outside of any service and of any container.
  package init() {}

  /// Puts a place together.
  package init(unit: Text?, owner: UInt32? = nil, container: Text? = nil, hasOtherNamespaces: Bool = false) {
    self.unit = unit
    self.owner = owner
    self.container = container
    self.hasOtherNamespaces = hasOtherNamespaces
  }

  /// The place as it counts for a user. A user's own service or container says who its owner is, and no more: another user
  /// in it is what it would be outside (`sudo` in a terminal that is such a service). In a container, users that are
  /// subordinate to the owner are the owner's.
  package func counting(for userID: UInt32, _ subordinates: SubordinateUsers) -> PeerPlace {
    guard let owner, owner != userID else { return self }
    if container != nil, subordinates.owner(of: userID) == owner { return self }
    return PeerPlace(unit: nil, hasOtherNamespaces: hasOtherNamespaces)
  }

  /// The name of the container: `ID`, and `ID@UID` for one that a user's manager runs, whose ID may be that user's choice.
  package var containerName: Text? {
    guard let container else { return nil }
    return owner.map { Text("\(container)@\($0)") } ?? container
  }
}

/// Who is at the other end of a connection, by the kernel's word at the time it connected.
package struct Peer: Equatable, Sendable {
  /// The app, by the table of the protocol's section 2.
  package let app: Text
  /// The user, as SO_PEERCRED gave it.
  package let userID: UInt32
  /// The group, as SO_PEERCRED gave it.
  package let groupID: UInt32
  /// The process that connected. It may be gone by now: never use it to decide anything.
  package let processID: Int32
  /// The control group and the namespaces of that process when it connected.
  package let place: PeerPlace
  /// Identifies its session. A new anchor means a new session. Nil where that could not be found out.
  package let session: SessionAnchor?
  /// Whether it is root or in `AdminGroup=`, and not contained.
  package let isAdmin: Bool
  /// Whether it is in `MonitorGroup=` or the daemon's own user, and not contained.
  package let isMonitor: Bool

  /// Whether it may read all rows of `status` and `stats`. A peer that may not is told of the daemon's health alone.
  package var mayMonitor: Bool { isAdmin || isMonitor }

  /// Takes over what the kernel and the control group say.
  ///
  /// - Parameters:
  ///   - isAdmin: whether the user is one, outside of containers.
  ///   - isMonitor: whether the user is a monitor, outside of containers.
  ///   - claims: the manifests'.
  package init(
    userID: UInt32, groupID: UInt32, processID: Int32, place: PeerPlace = PeerPlace(), session: SessionAnchor? = nil,
    isAdmin: Bool, isMonitor: Bool = false, claims: AppClaims = AppClaims(), ranges: UserRanges = UserRanges(),
    subordinates: SubordinateUsers = SubordinateUsers()
  ) {
    let place = place.counting(for: userID, subordinates)
    self.init(
      app: Self.app(of: place, userID, claims, ranges), userID: userID, groupID: groupID, processID: processID,
      place: place, session: session, isAdmin: isAdmin && !place.isContained,
      isMonitor: isMonitor && !place.isContained)
  }

  /// Takes over what an earlier daemon found out about a connection that it handed over.
  package init(
    app: Text, userID: UInt32, groupID: UInt32, processID: Int32, place: PeerPlace, session: SessionAnchor?,
    isAdmin: Bool, isMonitor: Bool = false
  ) {
    self.app = app
    self.userID = userID
    self.groupID = groupID
    self.processID = processID
    self.place = place
    self.session = session
    self.isAdmin = isAdmin
    self.isMonitor = isMonitor
  }

  /// The rules of the protocol's section 2, in their order.
  private static func app(of place: PeerPlace, _ userID: UInt32, _ claims: AppClaims, _ ranges: UserRanges) -> Text {
    if let name = place.containerName { return claims.app(container: name) ?? Text("container:\(name)") }
    let systemUnit = place.owner == nil ? place.unit : nil
    if let systemUnit, let app = claims.app(unit: systemUnit, userID: userID, ranges) { return app }
    if let app = claims.app(userID: userID) { return app }
    guard let unit = place.unit else { return Text("user:\(userID)") }
    if let owner = place.owner { return Text("unit:\(unit)@\(owner)") }
    return ranges.isUnitItself(userID) ? Text("unit:\(unit)") : Text("unit:\(unit):\(userID)")
  }

  /// The author of a change, as the history has it: `container:ID`, `unit:NAME` in a service, else `uid:N`.
  package var author: Text {
    if let name = place.containerName { return Text("container:\(name)") }
    guard let unit = place.unit else { return Text("uid:\(userID)") }
    return place.owner.map { Text("unit:\(unit)@\($0)") } ?? Text("unit:\(unit)")
  }
}

extension Text {
  /// Whether this names an app without a manifest. The file name of a manifest cannot have such a form.
  package var isUnclaimedApp: Bool { bytes.contains(UInt8(ascii: ":")) }
}
