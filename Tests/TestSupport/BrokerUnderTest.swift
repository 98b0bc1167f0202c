import Foundation
import LinuxSystem

/// A real Mosquitto on a port of its own at a loopback address.
package final class BrokerUnderTest: MessageBroker {
  /// The port, which stays the same over restarts.
  package private(set) var port: UInt16 = 0
  private let host: String
  private let folder: TemporaryFolder
  private var settings: String
  private let persistence: String
  private var process = Process()

  /// Starts a broker, and waits until it listens.
  ///
  /// - Parameters:
  ///   - settings: lines of mosquitto.conf(5) about the listener. By default everybody may connect.
  ///   - persists: whether retained messages outlast the broker.
  ///   - host: an address in 127.0.0.0/8.
  ///   - port: a port that is free there; by default any.
  package init(
    _ settings: String = "allow_anonymous true", persists: Bool = false, at host: String = "127.0.0.1",
    port: UInt16? = nil
  ) throws {
    self.host = host
    folder = try TemporaryFolder()
    let place = "persistence_location \(folder.path)/\nautosave_interval 1\nautosave_on_changes true\n"
    persistence = "persistence \(persists)\n\(persists ? place : "")log_dest file \(folder["log"])\n"
    self.settings = settings
    if let port {
      self.port = port
      try start()
      return
    }
    // Another program may take the port before the broker does.
    for _ in 1...4 {
      self.port = try Self.freePort()
      if (try? start()) != nil { return }
    }
    self.port = try Self.freePort()
    try start()
  }

  deinit { kill() }

  package var configuration: String { "Broker=mqtt://\(host):\(port)" }
  package var place: [String] { [] }
  package var address: (host: String, port: UInt16) { (host, port) }

  /// The log so far.
  package var log: String { (try? folder.text("log")) ?? "" }

  /// Returns how often the log has a text.
  package func count(_ text: String) -> Int { log.components(separatedBy: text).count - 1 }

  /// Starts the broker again.
  package func start() throws {
    let user = isRoot ? "user root\n" : ""
    try folder.write("mosquitto.conf", "listener \(port) \(host)\n\(settings)\n\(persistence)\(user)")
    process = Process()
    process.executableURL = URL(filePath: "/usr/sbin/mosquitto")
    process.arguments = ["-c", folder["mosquitto.conf"]]
    process.standardInput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.runUnmasked()
    let deadline = Date(timeIntervalSinceNow: patience)
    while process.isRunning, Date() < deadline {
      if isListening { return }
      usleep(5_000)
    }
    kill()
    throw Failure("mosquitto does not listen on port \(port): \(log)")
  }

  /// Kills the broker, and starts it with other lines about the listener.
  package func restart(with settings: String) throws {
    kill()
    self.settings = settings
    try start()
  }

  package func forget() throws {
    kill()
    try start()
  }

  /// Kills the broker with SIGKILL.
  package func kill() {
    guard process.isRunning else { return }
    _ = Foundation.kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }

  /// Makes the broker read its access rules again. Connections and subscriptions stay.
  package func reload() { _ = Foundation.kill(process.processIdentifier, SIGHUP) }

  /// Makes the broker stop, as on a machine without processor time.
  package func pause() { _ = Foundation.kill(process.processIdentifier, SIGSTOP) }

  /// Makes the broker go on.
  package func resume() { _ = Foundation.kill(process.processIdentifier, SIGCONT) }

  private var isListening: Bool { (try? Self.connection(to: port, at: host)) != nil }

  // MARK: Ports

  /// Returns a listening socket on a free loopback port, and the port.
  package static func listener() throws -> (descriptor: Int32, port: UInt16) {
    let socket = try socket()
    guard try unsafe withAddress(0, { unsafe bind(socket.number, $0, $1) }) == 0, listen(socket.number, 5) == 0 else {
      throw Failure("listen: \(errno)")
    }
    var address = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    _ = unsafe withUnsafeMutablePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe getsockname(socket.number, $0, &length)
      }
    }
    return (socket.release(), UInt16(bigEndian: address.sin_port))
  }

  /// Connects to a port of a loopback address.
  static func connection(to port: UInt16, at host: String = "127.0.0.1") throws -> Descriptor {
    let socket = try socket()
    guard try unsafe withAddress(port, at: host, { unsafe connect(socket.number, $0, $1) }) == 0 else {
      throw Failure("connect: \(errno)")
    }
    return socket
  }

  private static func freePort() throws -> UInt16 {
    let (descriptor, port) = try listener()
    close(descriptor)
    return port
  }

  private static func socket() throws -> Descriptor {
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    return Descriptor(adopting: try system("socket") { Foundation.socket(AF_INET, kind, 0) })
  }

  private static func withAddress<Result>(
    _ port: UInt16, at host: String = "127.0.0.1", _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
  ) throws -> Result {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = unsafe inet_addr(host)
    return unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
  }
}

/// Certificates for one test, made by openssl(1).
package final class CertificatesUnderTest {
  private let folder: TemporaryFolder

  /// Makes an authority, whose certificate is `authority.crt`.
  package init() throws {
    folder = try TemporaryFolder()
    try make("authority", [])
  }

  /// Returns the path of a file.
  package subscript(_ name: String) -> String { folder[name] }

  /// Makes a certificate that is valid for some names, `NAME.crt` with `NAME.key`.
  ///
  /// - Parameters:
  ///   - names: such as `DNS:localhost,IP:127.0.0.1`.
  ///   - isExpired: whether the certificate was made so long ago that it is no longer valid.
  package func issue(_ name: String, for names: String, isExpired: Bool = false) throws {
    try make(
      name, ["-CA", folder["authority.crt"], "-CAkey", folder["authority.key"], "-addext", "subjectAltName=\(names)"],
      at: isExpired ? ["faketime", "-f", "-10d"] : [])
  }

  private func make(_ name: String, _ options: [String], at clock: [String] = []) throws {
    let result = try run(
      clock + [
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc", "-days", "2",
        "-subj", "/CN=\(name)", "-keyout", folder["\(name).key"], "-out", folder["\(name).crt"],
      ] + options)
    guard result.status == 0 else { throw Failure("openssl: \(result.errors)") }
  }
}
