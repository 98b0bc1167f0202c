import Glibc
package import IdentityCore
package import LinuxSystem
import Systemd

/// The identity of a peer, by the kernel's word alone (identityd-protocol(7), section "WHO IS ASKING").
package struct PeerAttestation: ~Copyable {
  /// The attested peer.
  package let peer: AttestedPeer
  /// A pidfd of the process.
  package let process: Descriptor

  /// Attests the peer of a new connection.
  ///
  /// First takes a pidfd of the process. If the kernel reports the cgroup for the pidfd and the cgroup is cached, the
  /// service or container is known. Otherwise the service or container is looked up by PID. A PID may belong to another
  /// process by now, so the process must still be alive after all look-ups. Before Linux 6.5 a connection has no pidfd.
  /// There the pidfd is taken by PID, which may have been reused before that.
  ///
  /// The kernel is queried about each peer. If its answers are those about the latest peer, the conclusions from them are
  /// reused.
  ///
  /// - Parameter rules: the facts and settings about peers.
  /// - Throws: `unattested` if the peer was gone too early; `foreign` if the peer has no ID in the daemon's namespaces;
  ///   `unprovenPlace` if the names of its cgroups prove nothing; `noControlGroups` if cgroups cannot be read; `denied`
  ///   if the peer is in a container that is not served; `busy` if the daemon is out of descriptors or memory.
  package init(of socket: borrowing Descriptor, by rules: AttestationRules) throws(Refusal) {
    do {
      let credentials = try PeerCredentials(of: socket)
      // A process in a foreign PID namespace has PID 0, which libsystemd takes for the calling process.
      guard credentials.processID > 0, credentials.userID != rules.unnamedUser else { throw Refusal.foreign }
      let process = try PeerCredentials.processDescriptor(of: socket, number: credentials.processID)
      let number = ProcessFacts.controlGroup(of: process)
      // Pidfds have a unique inode number since Linux 6.9, and report the cgroup since Linux 6.13. So the inode number
      // of a pidfd that reports the cgroup is unique.
      let inode = try number == nil ? nil : process.inode()
      let rights = try Self.rights(credentials, of: socket, by: rules)
      let attested: AttestedPeer
      if let latest = rules.latest, let facts = latest.facts, facts.credentials == credentials, facts.group == number,
        facts.inode == inode, facts.rights == rights,
        try facts.session == Self.session(of: credentials.processID, inode, in: facts.unit),
        // The process may have entered a user namespace since, for a program that it trusts less. Only a peer with rights
        // has any to lose.
        try !latest.held.peer.mayMonitor || !rules.namespaces.hasOtherUsers(number: credentials.processID)
      {
        attested = latest
      } else {
        let group = try rules.groups.look(up: socket.number, in: number)
        if case .below(let unit) = group.place { throw Refusal.unprovenPlace(below: unit) }
        let place = PeerPlace(
          unit: group.unit.map { Text($0.name) }, owner: group.unit?.owner ?? group.container?.owner,
          container: group.container.map { Text($0.id) },
          hasOtherNamespaces: try rules.namespaces.hasOthers(process, number: credentials.processID)
        ).counting(for: credentials.userID, rules.subordinates)
        let unit = place.unit == nil ? nil : group.unit
        let session = try Self.session(of: credentials.processID, inode, in: unit)
        let peer = Peer(
          userID: credentials.userID, groupID: credentials.groupID, processID: credentials.processID, place: place,
          session: session, isAdmin: rights.isAdmin, isMonitor: rights.isMonitor, claims: rules.claims,
          ranges: rules.settings.ranges, subordinates: rules.subordinates)
        if let container = place.containerName, rules.settings.containers == .deny, peer.app.isUnclaimedApp {
          throw Refusal.denied(
            app: peer.app, userID: peer.userID,
            grant: "a manifest with Container=\(container), or [Access] Containers=own")
        }
        var facts: PeerFacts?
        if let number, let inode, rules.groups.isKnown(number) {
          facts = .init(
            credentials: credentials, group: number, inode: inode, unit: unit, session: session, rights: rights)
        }
        attested = AttestedPeer(facts: facts, held: rules.held(peer), sliceUser: group.user)
      }
      guard try PeerCredentials.isAlive(process.number) else { throw Refusal.unattested }
      peer = attested
      self.process = process
    } catch let refusal as Refusal {
      throw refusal
    } catch let error as SystemError where [EMFILE, ENFILE, ENOMEM].contains(error.code) {
      throw .busy("the daemon is out of descriptors or memory; try again later")
    } catch let error as SystemdError where [EMFILE, ENFILE, ENOMEM].contains(error.code) {
      throw .busy("the daemon is out of descriptors or memory; try again later")
    } catch {
      // An unknown fact leaves the peer unattested, because an error on this path must never grant rights.
      throw ControlGroups.areMounted ? .unattested : .noControlGroups
    }
  }

  /// Returns the pidfd of the process.
  package consuming func intoProcess() -> Descriptor { process }

  /// Returns the anchor of the peer's session: the run of its service, else the process itself.
  ///
  /// - Parameter inode: the inode number of the process's pidfd; nil if it is not unique.
  private static func session(of processID: Int32, _ inode: UInt64?, in unit: PeerUnit?) throws(SystemError)
    -> SessionAnchor?
  {
    if let invocation = unit?.invocation {
      return .invocation(UUID(high: invocation.high, low: invocation.low))
    }
    if let group = unit?.controlGroup { return .controlGroup(group) }
    if let inode { return .onlyProcess(processID, inode: inode) }
    return try ProcessFacts.startTime(of: processID).map { .process(processID, start: $0) }
  }

  private static func rights(
    _ credentials: PeerCredentials, of socket: borrowing Descriptor, by rules: AttestationRules
  ) throws(SystemError) -> PeerRights {
    if credentials.userID == 0 { return PeerRights(isAdmin: true, isMonitor: false) }
    let isOwn = credentials.userID == rules.ownUser
    if isOwn, rules.isOwnUserAdmin { return PeerRights(isAdmin: true, isMonitor: false) }
    guard rules.settings.adminGroup != nil || rules.settings.monitorGroup != nil else {
      return PeerRights(isAdmin: false, isMonitor: isOwn)
    }
    let groups = try PeerCredentials.groups(of: socket)
    func isMember(of group: UInt32?) -> Bool {
      guard let group else { return false }
      return credentials.groupID == group || groups.contains(group)
    }
    return PeerRights(
      isAdmin: isMember(of: rules.settings.adminGroup), isMonitor: isOwn || isMember(of: rules.settings.monitorGroup))
  }
}
