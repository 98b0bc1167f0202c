import Glibc
import IdentityCore
import IdentityWire
import LinuxSystem
import Systemd

extension Server {
  /// Accepts one pending connection. The kernel reports further pending connections again.
  ///
  /// A call that finds no pending connection costs as much as a call that accepts one.
  ///
  /// - Returns: whether there was a pending connection.
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

  /// Adds a connection to the table, or refuses it with an answer.
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

  /// Serves a new connection's first turn before the kernel watches it.
  ///
  /// A client with a single request has often gone by the time it is answered, and then there is nothing to watch.
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

  /// Watches a connection from now on.
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

  /// Asks the writer for the subordinate users of the user whose slice the peer is in, once per user.
  ///
  /// The answer applies to later connections. The peer's own user is not looked up: a user with 65,536 subordinate
  /// users would cause as many queries to the name service.
  private func askForRanges(of peer: AttestedPeer) {
    guard attestation.subordinates.isByOwner, let user = peer.sliceUser, attestation.isRegular(user),
      rangeOwners.count < Bound.rangeOwners, rangeOwners.insert(user).inserted
    else { return }
    inbox.send(.rangeOwner(user))
  }

  /// Sends the refusal before the connection closes. A new socket has room for one line.
  private func refuse(_ refusal: Refusal, _ socket: consuming Descriptor) {
    measurements.refused += 1
    logRefusal(refusal)
    var line: [UInt8] = []
    refusal.append(to: &line)
    _ = try? socket.send(line)
  }

  /// Logs a refusal, with a rate limit: a client that floods the daemon must not flood the journal too.
  private func logRefusal(_ refusal: Refusal) {
    let now = Clock.monotonicMicroseconds
    if let last = lastLoggedRefusal, now - last < UInt64(Bound.refusalLogMilliseconds) * 1_000 { return }
    lastLoggedRefusal = now
    say(.connectionRefused(reason: refusal.text))
  }

  /// Pauses accepting when descriptors or memory run out. Existing connections go on.
  ///
  /// Accepting resumes after a moment instead of spinning.
  private func pauseAccepting(_ error: SystemError) {
    say(.acceptPaused("\(error)"))
    listens(false)
    let pause = UInt64(Bound.acceptPauseMilliseconds) * 1_000
    if let acceptAgain { return acceptAgain.arm(after: pause) }
    do {
      acceptAgain = try loop.timer(after: pause) { [unowned self] in
        if stop == .running { listens(true) }
      }
    } catch {
      listens(true)
    }
  }

  /// Starts or stops watching for pending connections.
  func listens(_ listens: Bool) {
    do {
      try readiness.modify(listener.number, listens ? .read : [], token: LoopToken.listener)
    } catch {
      say(.acceptPaused("\(error)"))
    }
  }
}
