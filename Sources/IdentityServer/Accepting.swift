import Glibc
import IdentityCore
import IdentityWire
import LinuxSystem
import Systemd

extension Server {
  /// Takes a connection that waits. Of the others the kernel tells again: finding out that there are none costs as much
  /// as making one.
  ///
  /// - Returns: whether there was one.
  @discardableResult
  func acceptConnection() -> Bool {
    do {
      guard let socket = try UnixSocket.accept(on: listener) else { return false }
      admit(socket)
      return true
    } catch {
      pauseAccepting(error)
      return false
    }
  }

  /// Makes place for a connection, or says why not.
  private func admit(_ socket: consuming Descriptor) {
    let attested: PeerAttestation
    do {
      attested = try admissible(socket)
    } catch {
      return refuse(error, socket)
    }
    let connection = connections.insert(socket, peer: attested.peer.held, settings.limits)
    connection.process = consume attested.process
    measurements.accepted += 1
    settleSoon(connection)
    serveNewcomer(connection)
  }

  /// The first turn of a connection. A client that asks one thing has often gone by the time that it is answered: then
  /// there is nothing to be watched.
  private func serveNewcomer(_ connection: Connection) {
    goOn(connection)
    guard connections[connection.token] === connection else { return }
    if connection.wantsInput {
      connection.mayHaveInput = true
      goOn(connection)
      guard connections[connection.token] === connection else { return }
    }
    beginToWatch(connection)
  }

  /// Has the kernel tell of a connection from now on.
  func beginToWatch(_ connection: Connection) {
    do {
      try readiness.add(connection.descriptor.number, connection.wantedInterest, token: connection.token.rawValue)
      connection.interest = connection.wantedInterest
    } catch {
      drop(connection, "\(error)")
    }
  }

  private func admissible(_ socket: borrowing Descriptor) throws(Refusal) -> PeerAttestation {
    var attested = try PeerAttestation(of: socket, by: attestation, latest: latestPeer)
    if let refusal = connections.refusal(of: attested.peer.held, settings.limits) { throw refusal }
    if attested.peer.held !== latestPeer?.held {
      attested.peer.held = processes.held(attested.peer.held)
      noteUse(by: attested.peer.held.peer)
      askForRanges(of: attested.peer)
      latestPeer = attested.peer
    }
    return attested
  }

  /// Has the writer ask which users are subordinate to the one in whose slice the peer is, where nobody asked before. The
  /// answer counts for later connections.
  ///
  /// Not about the peer's own user: a user with 65,536 subordinate ones would have the name service asked as often.
  private func askForRanges(of peer: AttestedPeer) {
    guard attestation.subordinates.isByOwner, let user = peer.sliceUser, attestation.isRegular(user),
      rangeOwners.count < Bound.rangeOwners, rangeOwners.insert(user).inserted
    else { return }
    inbox.send(.rangeOwner(user))
  }

  /// Says why before the connection closes. A fresh socket has room for one line.
  private func refuse(_ refusal: Refusal, _ socket: consuming Descriptor) {
    measurements.refused += 1
    logRefusal(refusal)
    var line: [UInt8] = []
    refusal.append(to: &line)
    _ = try? socket.send(line)
  }

  /// A client that floods the daemon must not flood the journal too.
  private func logRefusal(_ refusal: Refusal) {
    let now = Clock.monotonicMicroseconds
    if let last = lastLoggedRefusal, now - last < UInt64(Bound.refusalLogMilliseconds) * 1_000 { return }
    lastLoggedRefusal = now
    say(.connectionRefused(reason: refusal.text))
  }

  /// Out of descriptors or memory: the connections that are there go on, and accepting is tried again in a moment
  /// rather than spun on.
  private func pauseAccepting(_ error: SystemError) {
    say(.acceptPaused("\(error)"))
    listens(false)
    let pause = UInt64(Bound.acceptPauseMilliseconds) * 1_000
    if let acceptAgain { return acceptAgain.arm(after: pause) }
    do {
      acceptAgain = try loop.timer(after: pause) { [unowned self] in
        if !isStopping { listens(true) }
      }
    } catch {
      listens(true)
    }
  }

  /// Whether the loop is told of connections that wait.
  func listens(_ listens: Bool) {
    do {
      try readiness.modify(listener.number, listens ? .read : [], token: LoopToken.listener)
    } catch {
      say(.acceptPaused("\(error)"))
    }
  }
}
