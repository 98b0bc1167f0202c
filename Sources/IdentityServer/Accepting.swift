import Glibc
import IdentityCore
import IdentityWire
import LinuxSystem
import Systemd

extension Server {
  /// Takes the connections that wait, a bounded number a turn.
  func acceptConnections(atMost count: Int) {
    for _ in 0..<count {
      do {
        guard let socket = try UnixSocket.accept(on: listener) else { return }
        admit(socket)
      } catch {
        return pauseAccepting(error)
      }
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
    guard let connection = admit(socket, attested.peer) else { return }
    connection.process = consume attested.process
    rest(connection)
    settleSoon(connection)
    goOn(connection)
  }

  /// Takes a connection in, as one of its user's.
  ///
  /// - Returns: nil where there is no descriptor left to watch it with, which is logged.
  func admit(_ socket: consuming Descriptor, _ peer: Peer) -> Connection? {
    let connection = connections.insert(socket, peer: peer, settings.limits)
    do {
      try readiness.add(connection.descriptor.number, connection.interest, token: connection.token.rawValue)
      return connection
    } catch {
      drop(connection, "\(error)")
      return nil
    }
  }

  private func admissible(_ socket: borrowing Descriptor) throws(Refusal) -> PeerAttestation {
    let attested = try PeerAttestation(
      of: socket, adminGroup: settings.adminGroup, unnamedUser: unnamedUser, claims: claims)
    if let refusal = connections.refusal(of: attested.peer.userID, settings.limits) { throw refusal }
    return attested
  }

  /// Says why before the connection closes. A fresh socket has room for one line.
  private func refuse(_ refusal: Refusal, _ socket: consuming Descriptor) {
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
