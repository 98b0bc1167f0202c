import Glibc
import IdentityCore
import LinuxSystem
import Systemd

/// A peer, and what that follows from.
struct AttestedPeer {
  /// Nil where there was more to it, as on a kernel that says less.
  let facts: PeerFacts?
  var held: HeldPeer
}

/// What is found out of whoever connects, each time anew. Where it is the same of another one, that is the same peer.
struct PeerFacts {
  let credentials: PeerCredentials
  /// The number of its control group, of which it is known what follows from it.
  let group: UInt64
  /// What follows from that.
  let unit: PeerUnit?
  let session: SessionAnchor?
  let isAdmin: Bool
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
  ///   - unnamedUser: see ``UserNamespace``; many are told as that one, so it is none of them.
  ///   - latest: who connected last. Most often it is who connects now: then the kernel is asked all the same, and what
  ///     follows from its answers is known.
  /// - Throws: `unattested` where the peer was gone too early; `foreign` where it cannot be seen from here; `busy` where
  ///   the daemon itself is out of descriptors.
  init(
    of socket: borrowing Descriptor, adminGroup: UInt32?, unnamedUser: UInt32?, claims: AppClaims,
    units: PeerUnits, latest: AttestedPeer?
  ) throws(Refusal) {
    do {
      let credentials = try PeerCredentials(of: socket)
      // A process in a foreign process namespace has number 0, which libsystemd takes for the caller itself.
      guard credentials.processID > 0, credentials.userID != unnamedUser else { throw Refusal.foreign }
      let process = try PeerCredentials.processDescriptor(of: socket, number: credentials.processID)
      let group = ProcessFacts.controlGroup(of: process)
      let isAdmin = try Self.isAdmin(credentials, of: socket, adminGroup: adminGroup)
      let attested: AttestedPeer
      if let latest, let facts = latest.facts, facts.credentials == credentials, facts.group == group,
        facts.isAdmin == isAdmin,
        try facts.session == Self.session(of: credentials.processID, process, hasInode: true, in: facts.unit)
      {
        attested = latest
      } else {
        let unit = try units.look(up: socket.number, in: group)
        let session = try Self.session(of: credentials.processID, process, hasInode: group != nil, in: unit)
        let peer = Peer(
          userID: credentials.userID, groupID: credentials.groupID, processID: credentials.processID,
          unit: unit.map { Text($0.name) }, unitOwner: unit?.owner, session: session, isAdmin: isAdmin, claims: claims)
        var facts: PeerFacts?
        if let group, units.isKnown(group) {
          facts = .init(credentials: credentials, group: group, unit: unit, session: session, isAdmin: isAdmin)
        }
        attested = AttestedPeer(facts: facts, held: HeldPeer(peer))
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

  /// What the peer's session hangs on: the run of its service, else the process itself.
  ///
  /// - Parameter hasInode: the kernel gives each process an inode of its own (Linux 6.9), which is known of those that
  ///   tell the control group (Linux 6.13).
  private static func session(
    of processID: Int32, _ process: borrowing Descriptor, hasInode: Bool, in unit: PeerUnit?
  ) throws(SystemError) -> SessionAnchor? {
    if let invocation = unit?.invocation {
      return .invocation(UUID(high: invocation.high, low: invocation.low))
    }
    if let group = unit?.controlGroup { return .controlGroup(group) }
    if hasInode { return .onlyProcess(processID, inode: try process.inode()) }
    return try ProcessFacts.startTime(of: processID).map { .process(processID, start: $0) }
  }

  private static func isAdmin(
    _ credentials: PeerCredentials, of socket: borrowing Descriptor, adminGroup: UInt32?
  ) throws(SystemError) -> Bool {
    if credentials.userID == 0 { return true }
    guard let adminGroup else { return false }
    if credentials.groupID == adminGroup { return true }
    return try PeerCredentials.groups(of: socket).contains(adminGroup)
  }
}
