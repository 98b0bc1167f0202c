import Foundation
import LinuxSystem

/// Passes the packets between devices and their broker. While it is told so, it repeats all of the broker's messages,
/// each once whole and once damaged, as fast as the devices take them.
struct Relay {
  /// A device with its connection to the broker.
  private final class Pair {
    let device: Descriptor
    let broker: Descriptor
    /// Bytes of the broker that are no whole packet yet.
    private var received: [UInt8] = []
    /// The messages to repeat.
    private var flood: [UInt8] = []
    private var unsent: [UInt8] = []
    private var chunk = [UInt8](repeating: 0, count: 65_536)

    init(_ device: consuming Descriptor, _ broker: consuming Descriptor) {
      self.device = device
      self.broker = broker
    }

    func waitsForRoom(_ isFlooding: Bool) -> Bool { !unsent.isEmpty || isFlooding && !flood.isEmpty }

    /// Returns whether the connection goes on.
    func pass(_ isFlooding: Bool, fromDevice: Bool, fromBroker: Bool) throws -> Bool {
      if fromDevice {
        guard let count = try device.receive(into: &chunk), count > 0 else { return false }
        try broker.sendAll(Array(chunk[..<count]))
      }
      if fromBroker {
        guard let count = try broker.receive(into: &chunk), count > 0 else { return false }
        received += chunk[..<count]
        var place = 0
        while true {
          let start = place
          guard let packet = try BrokerPacket(from: received, at: &place) else { break }
          let bytes = received[start..<place]
          unsent += bytes
          if case .message = packet, let last = bytes.last, flood.count < 1 << 20 {
            flood += bytes + bytes.dropLast() + [last ^ 1]
          }
        }
        received.removeFirst(place)
      }
      if unsent.isEmpty, isFlooding, !flood.isEmpty {
        while unsent.count < 65_536 { unsent += flood }
      }
      if !unsent.isEmpty, let count = try device.send(unsent) { unsent.removeFirst(count) }
      return true
    }
  }

  private let isFlooding = Locked(false)

  /// Starts a relay in a thread: it listens at a port, and connects to the broker at another one.
  init(at port: UInt16, to broker: UInt16) throws {
    let listener = unsafe try Self.socket(port) { unsafe bind($0, $1, $2) }
    guard listen(listener.number, 16) == 0 else { throw BenchError.system("listen") }
    let number = listener.release()
    try LinuxSystem.Thread(named: "relay") { [isFlooding] in
      do { try Self.run(number, broker, isFlooding) } catch { Program.say("relay: \(error)") }
    }.detach()
  }

  /// Begins or ends the flood.
  func floods(_ floods: Bool) { isFlooding.withLock { $0 = floods } }

  private static func run(_ listener: Int32, _ broker: UInt16, _ flag: Locked<Bool>) throws {
    var pairs: [Pair] = []
    while true {
      let isFlooding = flag.withLock { $0 }
      var watched = [pollfd(fd: listener, events: Int16(POLLIN), revents: 0)]
      for pair in pairs {
        let events = Int16(pair.waitsForRoom(isFlooding) ? POLLIN | POLLOUT : POLLIN)
        watched.append(pollfd(fd: pair.device.number, events: events, revents: 0))
        watched.append(pollfd(fd: pair.broker.number, events: Int16(POLLIN), revents: 0))
      }
      // The flag is looked at now and then.
      guard unsafe poll(&watched, nfds_t(watched.count), 50) >= 0 else { throw BenchError.system("poll") }
      // One pass over those that were watched, before there are new ones.
      let closed = pairs.indices.filter { place in
        let (device, broker) = (watched[1 + 2 * place].revents, watched[2 + 2 * place].revents)
        let reads = device & ~Int16(POLLOUT) != 0
        return (try? pairs[place].pass(isFlooding, fromDevice: reads, fromBroker: broker != 0)) != true
      }
      for place in closed.reversed() { pairs.remove(at: place) }
      if watched[0].revents != 0 {
        let device = Descriptor(adopting: accept(listener, nil, nil))
        pairs.append(Pair(device, unsafe try socket(broker) { unsafe connect($0, $1, $2) }))
      }
    }
  }

  /// Returns a socket on which a function was called with the address of a port of the loopback interface.
  private static func socket(
    _ port: UInt16, _ call: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32
  ) throws -> Descriptor {
    let socket = Descriptor(adopting: Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0))
    var isReused: Int32 = 1
    unsafe setsockopt(socket.number, SOL_SOCKET, SO_REUSEADDR, &isReused, socklen_t(MemoryLayout<Int32>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    let number = socket.number
    let result = unsafe withUnsafePointer(to: &address) { address in
      unsafe address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe call(number, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard result == 0 else { throw BenchError.system("port \(port)") }
    return socket
  }
}
