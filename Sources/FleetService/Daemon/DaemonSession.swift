import FleetWire
import IdentityClient
import IdentityWire
import LinuxSystem
import Systemd

/// The connection with identityd, which is made again after its end, and the reading of this device's state over it.
final class DaemonSession {
  private enum Phase {
    /// There is no connection.
    case apart
    /// The state of this device is to be read.
    case due(DaemonLink)
    /// The state was read, or identityd refused it.
    case read(DaemonLink)
    /// identityd found that the connection lacks the right. It finds out once whose a connection is, so another one may
    /// have the right, once the manifest is read.
    case denied(DaemonLink)
  }

  /// The pauses before another start, at first and at most, in milliseconds.
  private static let (shortestPause, longestPause) = (500, 30_000)

  /// The run of this process.
  let run: Run
  private let loop: EventLoop
  private let daemon: DaemonSocket
  private var phase: Phase = .apart
  /// The watch on the connection.
  private var source: EventSource?
  /// The pause before the next start after a fault. It doubles until a start succeeds.
  private var pause = shortestPause
  /// Called once identityd has answered for the first time; nil afterwards.
  private var ready: (() -> Void)?

  /// The session of a run, without a connection.
  ///
  /// - Parameter ready: called once identityd has answered.
  init(_ loop: EventLoop, _ daemon: DaemonSocket, _ run: Run, ready: @escaping () -> Void) {
    self.loop = loop
    self.daemon = daemon
    self.run = run
    self.ready = ready
  }

  /// The connection; nil without one.
  var link: DaemonLink? {
    switch phase {
    case .apart: nil
    case .due(let link), .read(let link), .denied(let link): link
    }
  }

  /// Connects if there is no connection of use, and has the state read.
  ///
  /// - Parameter heard: called when an event has arrived, and at the end of the connection.
  func connect(heard: @escaping () -> Void) throws(DaemonFault) {
    if case .denied = phase { end() }
    guard link == nil else { return requestStart() }
    let link = try DaemonLink(to: daemon)
    // Before the state is read, so that no change is missed. A connection without events is of no use.
    try link.subscribe()
    do {
      source = try loop.watch(readable: link.descriptor, heard)
    } catch {
      throw .lost(.unreachable(path: daemon.path, code: error.code))
    }
    phase = .due(link)
  }

  /// Has the state read again at the end of the turn.
  func requestStart() { if let link { phase = .due(link) } }

  /// Returns the connection over which the state is to be read now; nil if it was read.
  func takeStart() -> DaemonLink? {
    guard case .due(let link) = phase else { return nil }
    phase = .read(link)
    return link
  }

  /// Begins the run of this process.
  func open(over link: DaemonLink) throws(DaemonFault) -> DaemonLink.Opening {
    let opening = try link.open(run)
    ready.take()?()
    return opening
  }

  /// Notes that the state was read whole.
  func noteStart() { pause = Self.shortestPause }

  /// Ends the connection after a fault. A refusal leaves the connection, over which the reason can be shown.
  ///
  /// - Returns: the pause before the next start, in milliseconds.
  func lose(after fault: DaemonFault) -> Int {
    if case .refused(let code, _) = fault {
      if let link { phase = code == .denied ? .denied(link) : .read(link) }
      ready.take()?()
    } else {
      end()
    }
    defer { pause = min(2 * pause, Self.longestPause) }
    return pause
  }

  private func end() {
    // The source first: its descriptor belongs to the connection.
    source = nil
    phase = .apart
  }
}
