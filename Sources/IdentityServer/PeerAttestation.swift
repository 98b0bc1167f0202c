import Glibc
import IdentityCore
import LinuxSystem
import Systemd

/// A peer, and what that follows from.
struct AttestedPeer {
  /// Nil where there was more to it, as on a kernel that says less.
  let facts: PeerFacts?
  var held: HeldPeer
  /// The user in whose slice it is.
  let sliceUser: UInt32?
}

/// What is found out of whoever connects, each time anew. Where it is the same of another one, that is the same peer.
struct PeerFacts {
  let credentials: PeerCredentials
  /// The number of its control group, of which it is known what follows from it.
  let group: UInt64
  /// The number that the kernel gives to one process in a boot alone: its namespaces are those that were looked at.
  let inode: UInt64
  /// The service that the control group stands for, as it counts for the peer's user.
  let unit: PeerUnit?
  let session: SessionAnchor?
  let rights: PeerRights
}

/// The rights that follow from a peer's user and groups, unless it is contained.
struct PeerRights: Equatable {
  /// See ``Peer/isAdmin``.
  var isAdmin: Bool
  /// See ``Peer/isMonitor``.
  var isMonitor: Bool
}

/// The facts and settings by which peers are attested.
struct AttestationRules {
  /// Nobody is believed to be this user; see ``UserNamespace``. Many are told as that one, so it is none of them.
  let unnamedUser: UInt32?
  /// The group of `AdminGroup=`.
  private(set) var adminGroup: UInt32?
  /// The group of `MonitorGroup=`.
  private(set) var monitorGroup: UInt32?
  /// The user of the daemon: that user can read the state itself.
  let ownUser = Accounts.ownUserID
  /// The policy for containers that no manifest admits.
  private(set) var containers = ContainerPolicy.own
  /// Which users are regular ones.
  private(set) var ranges = UserRanges()
  /// The manifests'.
  var claims = AppClaims()
  /// Which users are subordinate to which.
  var subordinates = SubordinateUsers()
  /// The services and containers behind control groups.
  let groups: PeerGroups
  /// Those of the daemon.
  let namespaces: ProcessNamespaces

  /// Looks at what the daemon itself runs in.
  init(_ settings: ServerSettings) throws(SystemError) {
    unnamedUser = try UserNamespace.unnamedUser()
    groups = PeerGroups(
      atMost: Bound.peerGroups, own: try ProcessFacts.ownControlGroup().flatMap { ContainerScope(group: $0) })
    namespaces = try ProcessNamespaces()
    use(settings)
  }

  /// A peer with whom it is charged to.
  func held(_ peer: Peer) -> HeldPeer {
    HeldPeer(
      peer, Principal(of: peer, subordinates),
      usesReserve: !peer.place.isContained && ranges.isForServices(peer.userID))
  }

  /// Whether a user is there for no services.
  func isRegular(_ user: UInt32) -> Bool { !ranges.isForServices(user) }

  /// Puts settings in force.
  mutating func use(_ settings: ServerSettings) {
    adminGroup = settings.adminGroup
    monitorGroup = settings.monitorGroup
    containers = settings.containers
    ranges = settings.userRanges
  }
}

/// Who connected, by nothing but the kernel's word (protocol, section 2).
struct PeerAttestation: ~Copyable {
  /// Who it is.
  var peer: AttestedPeer
  /// Stands for the process.
  let process: Descriptor

  /// Attests the peer of a fresh connection.
  ///
  /// A descriptor that stands for the process itself is taken first. Where the kernel tells the control group by it, and
  /// the group is known, that is all. Else it is looked up by process number, which may be another process's by now, so
  /// after the look-up the process has to be alive still. Kernels before 6.5 have no such descriptor for a connection:
  /// there it is taken by the number, which may be another process's from before that.
  ///
  /// - Parameters:
  ///   - rules: what the machine and the administrator say of peers.
  ///   - latest: who connected last. Most often it is who connects now: then the kernel is asked all the same, and what
  ///     follows from its answers is known.
  /// - Throws: `unattested` where the peer was gone too early; `foreign` where it cannot be seen from here; `denied` where it
  ///   is in a container that is not served; `busy` where the daemon itself is out of descriptors.
  init(of socket: borrowing Descriptor, by rules: borrowing AttestationRules, latest: AttestedPeer?) throws(Refusal) {
    do {
      let credentials = try PeerCredentials(of: socket)
      // A process in a foreign process namespace has number 0, which libsystemd takes for the caller itself.
      guard credentials.processID > 0, credentials.userID != rules.unnamedUser else { throw Refusal.foreign }
      let process = try PeerCredentials.processDescriptor(of: socket, number: credentials.processID)
      let number = ProcessFacts.controlGroup(of: process)
      // Each process has an inode of its own since Linux 6.9, and those that tell the control group are of 6.13.
      let inode = try number == nil ? nil : process.inode()
      let rights = try Self.rights(credentials, of: socket, by: rules)
      let attested: AttestedPeer
      if let latest, let facts = latest.facts, facts.credentials == credentials, facts.group == number,
        facts.inode == inode, facts.rights == rights,
        try facts.session == Self.session(of: credentials.processID, inode, in: facts.unit)
      {
        attested = latest
      } else {
        let group = try rules.groups.look(up: socket.number, in: number)
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
          ranges: rules.ranges, subordinates: rules.subordinates)
        if let container = place.containerName, rules.containers == .deny, peer.app.isUnclaimedApp {
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
      throw .busy("the daemon is out of descriptors or memory for a moment")
    } catch let error as SystemdError where [EMFILE, ENFILE, ENOMEM].contains(error.code) {
      throw .busy("the daemon is out of descriptors or memory for a moment")
    } catch {
      // Whatever could not be found out counts as nobody: an error on this path must never give rights.
      throw .unattested
    }
  }

  /// Identifies the peer's session: by the run of its service, else by the process itself.
  ///
  /// - Parameter inode: the process's own; nil where the kernel gives one to several.
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
    _ credentials: PeerCredentials, of socket: borrowing Descriptor, by rules: borrowing AttestationRules
  ) throws(SystemError) -> PeerRights {
    if credentials.userID == 0 { return PeerRights(isAdmin: true, isMonitor: false) }
    let isOwn = credentials.userID == rules.ownUser
    guard rules.adminGroup != nil || rules.monitorGroup != nil else {
      return PeerRights(isAdmin: false, isMonitor: isOwn)
    }
    let groups = try PeerCredentials.groups(of: socket)
    func isMember(of group: UInt32?) -> Bool {
      guard let group else { return false }
      return credentials.groupID == group || groups.contains(group)
    }
    return PeerRights(
      isAdmin: isMember(of: rules.adminGroup), isMonitor: isOwn || isMember(of: rules.monitorGroup))
  }
}
