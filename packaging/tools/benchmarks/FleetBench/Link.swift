import Glibc

/// A device's connection with a broker.
final class Link {
  /// The number under which the poller watches it.
  let number: UInt64
  private let poller: Poller
  private let socket: Int32
  private var unsent: [UInt8]
  private var received: [UInt8] = []
  private var identifier: UInt16 = 0
  private var isWritten = false
  /// The bytes that went each way, without the headers of TCP/IP.
  private(set) var (sentCount, receivedCount) = (0, 0)

  /// Begins to connect, and to ask for a session.
  init(
    to port: UInt16, number: UInt64, _ poller: Poller, client: String, keepAlive: UInt16,
    will: (topic: String, payload: [UInt8])?
  ) throws {
    self.number = number
    self.poller = poller
    socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard socket >= 0 else { throw BenchError.system("socket") }
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

  /// Sends a packet as soon as the socket takes it.
  func send(_ packet: [UInt8]) {
    unsent += packet
    sentCount += packet.count
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
    while true {
      let count = unsafe recv(socket, &chunk, chunk.count, 0)
      guard count > 0 else {
        if count == 0 || errno != EAGAIN { return nil }
        break
      }
      receivedCount += count
      received += chunk[..<count]
      if count < chunk.count { break }
    }
    var place = 0
    var packets: [BrokerPacket] = []
    while let packet = try BrokerPacket(from: received, at: &place) { packets.append(packet) }
    received.removeFirst(place)
    return packets
  }

  /// Sends the packets that wait. Returns false if the connection has ended.
  func flush() -> Bool {
    while !unsent.isEmpty {
      let count = unsafe Glibc.send(socket, unsent, unsent.count, Int32(MSG_NOSIGNAL))
      guard count > 0 else {
        guard errno == EAGAIN || errno == ENOTCONN else { return false }
        break
      }
      unsent.removeFirst(count)
    }
    guard isWritten != !unsent.isEmpty else { return true }
    isWritten = !unsent.isEmpty
    return (try? poller.watch(socket, as: number, writes: isWritten, isNew: false)) != nil
  }
}
