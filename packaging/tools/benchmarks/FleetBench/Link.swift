import Glibc
import LinuxSystem

/// A device's connection with a broker.
final class Link {
  /// The number under which the poller watches it.
  let number: UInt64
  private let poller: Poller
  private let socket: Int32
  /// Nil without TLS.
  private let secured: SecureSession?
  private var unsent: [UInt8]
  private var received: [UInt8] = []
  private var identifier: UInt16 = 0
  private var isWritten = false
  private var isConnected = false
  /// The bytes that went each way without TLS.
  private var plain = (sent: 0, received: 0)
  /// When bytes went last, each way.
  private var (lastSent, lastReceived) = (Clock.monotonicMicroseconds, Clock.monotonicMicroseconds)
  /// The silence in microseconds after which the device asks the broker for a sign of life; nil for never.
  private let longestSilence: UInt64?

  /// Begins to connect, and to ask for a session.
  ///
  /// - Parameters:
  ///   - security: nil for a connection without TLS.
  ///   - keepAlive: in seconds; 0 for none.
  init(
    to port: UInt16, _ security: TransportSecurity?, number: UInt64, _ poller: Poller, client: String,
    keepAlive: UInt16, will: (topic: String, payload: [UInt8])?
  ) throws {
    self.number = number
    self.poller = poller
    socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard socket >= 0 else { throw BenchError.system("socket") }
    do { secured = try security?.session(over: socket) } catch {
      close(socket)
      throw error
    }
    longestSilence = keepAlive == 0 ? nil : UInt64(keepAlive) * 1_000_000
    unsent = Packet.connect(client, keepAlive: keepAlive, will: will)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    let result = unsafe withUnsafePointer(to: &address) { address in
      unsafe address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard result == 0 || errno == EINPROGRESS else {
      defer { close(socket) }
      throw BenchError.system("connect")
    }
    try poller.watch(socket, as: number, writes: true, isNew: true)
    isWritten = true
  }

  deinit { close(socket) }

  /// The bytes that went each way, with those of TLS and without the headers of TCP/IP.
  var count: (sent: Int, received: Int) { secured?.count ?? plain }

  /// Sends a packet as soon as the socket takes it.
  func send(_ packet: [UInt8]) { unsent += packet }

  /// Asks for a sign of life after a silence in either direction, as libmosquitto does.
  func care(at now: UInt64) {
    guard let longestSilence, now >= min(lastSent, lastReceived) + longestSilence else { return }
    (lastSent, lastReceived) = (now, now)
    send(Packet.ping)
  }

  /// Returns the identifier of the next packet that needs one.
  func nextIdentifier() -> UInt16 {
    identifier = identifier == .max ? 1 : identifier + 1
    return identifier
  }

  /// Sends and receives as much as possible without waiting.
  ///
  /// - Returns: the packets that arrived; nil if the connection has ended.
  func exchange() throws -> [BrokerPacket]? {
    guard flush() else { return nil }
    var chunk = [UInt8](repeating: 0, count: 65_536)
    reading: while true {
      switch read(into: &chunk) {
      case .moved(let count): received += chunk[..<count]
      case .waitsForBytes, .waitsForRoom: break reading
      case .ended: return nil
      }
    }
    lastReceived = Clock.monotonicMicroseconds
    var place = 0
    var packets: [BrokerPacket] = []
    while let packet = try BrokerPacket(from: received, at: &place) { packets.append(packet) }
    received.removeFirst(place)
    return packets
  }

  /// Sends the packets that wait. Returns false if the connection has ended.
  func flush() -> Bool {
    var needsRoom = false
    writing: while !unsent.isEmpty {
      switch write() {
      case .moved(let count):
        unsent.removeFirst(count)
        lastSent = Clock.monotonicMicroseconds
      case .waitsForBytes: break writing
      case .waitsForRoom:
        needsRoom = true
        break writing
      case .ended: return false
      }
    }
    guard isWritten != needsRoom else { return true }
    isWritten = needsRoom
    return (try? poller.watch(socket, as: number, writes: isWritten, isNew: false)) != nil
  }

  /// Returns whether the socket has its peer. TLS would take the lack of one for the end.
  private func connects() -> Bool {
    var address = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    isConnected = unsafe withUnsafeMutablePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe getpeername(socket, $0, &length) == 0 }
    }
    return isConnected
  }

  private func read(into chunk: inout [UInt8]) -> SecureSession.Outcome {
    if let secured { return secured.read(into: &chunk) }
    let count = unsafe recv(socket, &chunk, chunk.count, 0)
    guard count > 0 else { return count < 0 && errno == EAGAIN ? .waitsForBytes : .ended }
    plain.received += count
    return .moved(count)
  }

  private func write() -> SecureSession.Outcome {
    guard isConnected || connects() else { return .waitsForRoom }
    if let secured { return secured.write(unsent) }
    let count = unsafe Glibc.send(socket, unsent, unsent.count, Int32(MSG_NOSIGNAL))
    guard count > 0 else { return errno == EAGAIN ? .waitsForRoom : .ended }
    plain.sent += count
    return .moved(count)
  }
}
