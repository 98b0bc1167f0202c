/// Identifies a session. A new anchor means a new session.
package enum SessionAnchor: Hashable, Sendable {
  /// The invocation ID of the peer's service (`INVOCATION_ID`, systemd.exec(5)).
  case invocation(UUID)
  /// The cgroup ID of a service of a user's manager. Each run of the service has a new cgroup.
  case controlGroup(UInt64)
  /// The PID of a process outside any service, and its start time in clock ticks since boot (proc(5)).
  case process(Int32, start: UInt64)
  /// The PID of a process outside any service, and the inode number of its pidfd, which is unique within a
  /// boot (sd_pidfd_get_inode_id(3)).
  case onlyProcess(Int32, inode: UInt64)
}

/// The cgroup and the namespaces of a process, as reported by the kernel.
package struct PeerPlace: Equatable, Sendable {
  /// The name of the systemd service, if any.
  package var unit: Text?
  /// The ID or name of the container whose scope the process is in, if any.
  package var container: Text?
  /// The user whose manager runs the service or container; nil for the system manager.
  package var owner: UInt32?
  /// Whether the process is in a PID namespace or user namespace other than the daemon's.
  package var hasOtherNamespaces = false

  /// Whether the process is contained: in a container's scope, or in another PID or user namespace.
  package var isContained: Bool { container != nil || hasOtherNamespaces }

  package init() {}

  package init(unit: Text?, owner: UInt32? = nil, container: Text? = nil, hasOtherNamespaces: Bool = false) {
    self.unit = unit
    self.owner = owner
    self.container = container
    self.hasOtherNamespaces = hasOtherNamespaces
  }

  /// Returns the place reduced to the parts that apply to a user.
  ///
  /// A user's own service or container identifies only its owner. Any other user inside counts as if outside, for
  /// example after `sudo` in a terminal that runs as such a service. In a container, the owner's subordinate users
  /// count as the owner.
  package func counting(for userID: UInt32, _ subordinates: SubordinateUsers) -> PeerPlace {
    guard let owner, owner != userID else { return self }
    if container != nil, subordinates.owner(of: userID) == owner { return self }
    return PeerPlace(unit: nil, hasOtherNamespaces: hasOtherNamespaces)
  }

  /// The name of the container: `ID`, or `ID@UID` if a user's manager runs the container. That user may choose the ID.
  package var containerName: Text? {
    guard let container else { return nil }
    return owner.map { Text("\(container)@\($0)") } ?? container
  }
}

/// The process at the other end of a connection, as attested by the kernel at connect time.
package struct Peer: Equatable, Sendable {
  /// The app of the peer, by the table in identityd-protocol(7), section "WHO IS ASKING".
  package let app: Text
  /// The user ID from `SO_PEERCRED`.
  package let userID: UInt32
  /// The group ID from `SO_PEERCRED`.
  package let groupID: UInt32
  /// The PID of the process that connected. The process may have exited since: no decision may depend on this PID.
  package let processID: Int32
  /// The cgroup and the namespaces of the process at connect time.
  package let place: PeerPlace
  /// Identifies the peer's session. A new anchor means a new session. Nil if the anchor could not be determined.
  package let session: SessionAnchor?
  /// Whether the peer is root, a member of `AdminGroup=` or the owner of a daemon of his own, and not contained.
  package let isAdmin: Bool
  /// Whether the peer is a member of `MonitorGroup=` or runs as the daemon's user, and is not contained.
  package let isMonitor: Bool

  /// Whether the peer may read all rows of `status` and `stats`. Any other peer learns only about the daemon's health.
  package var mayMonitor: Bool { isAdmin || isMonitor }

  /// Creates a peer from the facts that the kernel and the cgroup report.
  ///
  /// - Parameters:
  ///   - isAdmin: whether the user is an admin outside of containers.
  ///   - isMonitor: whether the user may monitor the daemon outside of containers.
  ///   - claims: the claims of all manifests.
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

  /// Creates a peer from the facts that an earlier daemon recorded before it handed the connection over.
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

  /// Returns the app by the first matching rule of identityd-protocol(7), section "WHO IS ASKING".
  private static func app(of place: PeerPlace, _ userID: UInt32, _ claims: AppClaims, _ ranges: UserRanges) -> Text {
    if let name = place.containerName { return claims.app(container: name) ?? Text("container:\(name)") }
    let systemUnit = place.owner == nil ? place.unit : nil
    if let systemUnit, let app = claims.app(unit: systemUnit, userID: userID, ranges) { return app }
    if let app = claims.app(userID: userID) { return app }
    guard let unit = place.unit else { return Text("user:\(userID)") }
    if let owner = place.owner { return Text("unit:\(unit)@\(owner)") }
    return ranges.isUnitItself(userID) ? Text("unit:\(unit)") : Text("unit:\(unit):\(userID)")
  }

  /// The author of a change, as recorded in the history.
  ///
  /// The form is `container:ID` in a container, `unit:NAME` or `unit:NAME@UID` in a service, and `uid:N` elsewhere.
  package var author: Text {
    if let name = place.containerName { return Text("container:\(name)") }
    guard let unit = place.unit else { return Text("uid:\(userID)") }
    return place.owner.map { Text("unit:\(unit)@\($0)") } ?? Text("unit:\(unit)")
  }
}

extension Text {
  /// Whether the text is the ID of an app without a manifest.
  ///
  /// Such an ID contains a colon, which the file name of a manifest cannot contain.
  package var isUnclaimedApp: Bool { bytes.contains(UInt8(ascii: ":")) }
}
