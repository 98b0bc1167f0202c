import CMosquitto
import Glibc
import LinuxSystem

/// The reason why a connection ends.
struct ConnectionFault: Error {
  let reason: String
}

/// An instance of libmosquitto, which serves one connection and is used by one thread.
///
/// libmosquitto is asked for nothing but bytes and packets: it neither waits, nor connects again, nor has a thread.
@safe struct Instance: ~Copyable {
  /// The silence in milliseconds after which the kernel drops a connection whose peer acknowledges no data.
  private static let userTimeout: Int32 = 20_000
  /// The errors by which the network ends an attempt to connect. With TLS, libmosquitto tells of an error of TLS.
  private static let networkErrors = [ECONNREFUSED, ECONNRESET, EHOSTUNREACH, ENETUNREACH, ETIMEDOUT]
  /// Whether libmosquitto is initialized, once for the process.
  private static let isReady = mosquitto_lib_init() == MOSQ_ERR_SUCCESS.rawValue

  private let handle: OpaquePointer

  /// Creates an instance that calls back a wire, which has to outlive the instance.
  init(for wire: Wire) throws(ConnectionFault) {
    var identifier = try Self.randomIdentifier()
    let receiver = unsafe Unmanaged.passUnretained(wire).toOpaque()
    guard Self.isReady, let handle = unsafe mosquitto_new(&identifier, true, receiver) else {
      throw ConnectionFault(reason: "libmosquitto has not enough memory")
    }
    unsafe self.handle = handle
    unsafe mosquitto_connect_callback_set(handle) { _, wire, code in unsafe Wire.from(wire)?.noteAnswer(code) }
    unsafe mosquitto_publish_callback_set(handle) { _, wire, id in unsafe Wire.from(wire)?.notePublished(id) }
    unsafe mosquitto_subscribe_callback_set(handle) { _, wire, id, count, granted in
      // By MQTT 3.1.1, 0x80 means failure.
      unsafe Wire.from(wire)?.noteSubscribed(id, isGranted: count > 0 && granted?[0] != 0x80)
    }
    unsafe mosquitto_message_callback_set(handle) { handle, wire, message in
      guard let message = unsafe message?.pointee, let topic = unsafe message.topic else { return }
      let length = unsafe min(Int(message.payloadlen), Delivery.longestPayload)
      let bytes = unsafe UnsafeRawBufferPointer(start: message.payload, count: length)
      let delivery = unsafe Delivery(
        topic: String(cString: topic), payload: Array(bytes), isRetained: message.retain)
      guard unsafe Wire.from(wire)?.noteReceived(delivery) == false else { return }
      // Over TLS, the library reads on as long as bytes arrive. This alone stops it.
      _ = unsafe shutdown(mosquitto_socket(handle), Int32(SHUT_RDWR))
    }
    unsafe mosquitto_log_callback_set(handle) { _, wire, level, text in
      guard level == MOSQ_LOG_ERR, let text = unsafe text else { return }
      unsafe Wire.from(wire)?.noteComplaint(String(cString: text))
    }
  }

  deinit { unsafe mosquitto_destroy(handle) }

  /// Returns 23 random digits and letters, with the zero that ends them.
  ///
  /// Another identifier for each connection keeps a copied machine from throwing off the original, and some brokers
  /// refuse other characters.
  private static func randomIdentifier() throws(ConnectionFault) -> [CChar] {
    var bytes = [UInt8](repeating: 0, count: Int(MOSQ_MQTT_ID_MAX_LENGTH))
    do {
      try Entropy.fill(&bytes)
    } catch {
      throw ConnectionFault(reason: "\(error)")
    }
    let characters = Array("0123456789abcdefghijklmnopqrstuvwxyz".utf8)
    return bytes.map { CChar(bitPattern: characters[Int($0) % characters.count]) } + [0]
  }

  // MARK: Connecting

  /// Resolves the name of the host, which can take long, and starts to connect.
  func connect(_ access: BrokerAccess) throws(ConnectionFault) {
    if let user = access.user { try check(unsafe mosquitto_username_pw_set(handle, user.name, user.password)) }
    if case .tls(let authorities, let certificate) = access.protection {
      // Without the callback, OpenSSL would ask a terminal for the passphrase of a key.
      let code = unsafe mosquitto_tls_set(
        handle, authorities, nil, certificate?.file, certificate?.key, { _, _, _, _ in 0 })
      guard code != MOSQ_ERR_INVAL.rawValue else {
        let files = [authorities, certificate?.file, certificate?.key].compactMap { $0 }
        throw ConnectionFault(reason: "one of these files cannot be read: \(files.joined(separator: ", "))")
      }
      try check(code)
      try check(unsafe mosquitto_tls_opts_set(handle, 1, "tlsv1.2", nil))
    }
    if let will = access.will {
      try check(unsafe mosquitto_will_set(handle, will.topic, Int32(will.payload.count), will.payload, 0, false))
    }
    try check(unsafe mosquitto_int_option(handle, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V311))
    errno = 0
    let code = unsafe mosquitto_connect_async(handle, access.host, Int32(access.port), Int32(access.keepAlive))
    // With TLS, the library begins the handshake, and its result does not tell that the network has refused that.
    let systemCode = errno
    guard access.protection == .none || !Self.networkErrors.contains(systemCode) else {
      throw ConnectionFault(reason: SystemError.text(of: systemCode))
    }
    guard code != MOSQ_ERR_TLS.rawValue || hasPeer else { throw Self.lost }
    try check(code)
    for (level, option, value) in [
      (Int32(IPPROTO_TCP), TCP_NODELAY, Int32(1)), (SOL_SOCKET, SO_KEEPALIVE, 1),
      (Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, Self.userTimeout),
    ] {
      var value = value
      // An option that the system lacks only makes the end of a connection known later.
      _ = unsafe setsockopt(socket, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }
  }

  /// The connection's socket; -1 if there is none.
  var socket: Int32 { unsafe mosquitto_socket(handle) }

  /// The error of the socket, in words.
  var socketError: String {
    var code: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    _ = unsafe getsockopt(socket, SOL_SOCKET, SO_ERROR, &code, &length)
    return code == 0 ? "the broker closed the connection" : SystemError.text(of: code)
  }

  // MARK: Bytes

  /// Whether bytes wait for room in the socket.
  var wantsToWrite: Bool { unsafe mosquitto_want_write(handle) }

  /// Reads the bytes that have arrived, and calls back.
  func read() throws(ConnectionFault) { unsafe try exchange(mosquitto_loop_read) }

  /// Writes the bytes that wait, as far as there is room.
  func write() throws(ConnectionFault) { unsafe try exchange(mosquitto_loop_write) }

  /// Moves bytes by a function of the library. A socket that has lost its peer, or never had one, is no fault of TLS.
  private func exchange(_ function: (OpaquePointer?, Int32) -> Int32) throws(ConnectionFault) {
    let hasPeer = hasPeer
    errno = 0
    let code = unsafe function(handle, 1)
    guard code != MOSQ_ERR_TLS.rawValue || hasPeer || Self.networkErrors.contains(errno) else {
      throw Self.lost
    }
    try check(code)
  }

  /// The releases of the library have other words.
  private static let lost = ConnectionFault(reason: "the connection was lost")

  private var hasPeer: Bool {
    var address = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return unsafe withUnsafeMutablePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe getpeername(socket, $0, &length) == 0
      }
    }
  }

  /// Keeps the connection alive, and notices a silent broker. To be called several times in each keep-alive.
  func care() throws(ConnectionFault) { try check(unsafe mosquitto_loop_misc(handle)) }

  /// Tells the broker that the connection ends.
  func disconnect() { _ = unsafe mosquitto_disconnect(handle) }

  // MARK: Packets

  /// Sends a subscription. Returns its number, by which it is acknowledged.
  func subscribe(to filter: String) throws(ConnectionFault) -> Int32 {
    var id: Int32 = 0
    // With QoS 1, some brokers make each subscription so expensive that they refuse the later ones.
    try check(unsafe mosquitto_subscribe(handle, &id, filter, 0))
    return id
  }

  /// Sends a message. Returns its number, by which it is acknowledged if it is retained.
  func publish(_ message: Publication) throws(ConnectionFault) -> Int32 {
    var id: Int32 = 0
    try check(
      unsafe mosquitto_publish(
        handle, &id, message.topic, Int32(message.payload.count), message.payload, message.isRetained ? 1 : 0,
        message.isRetained))
    return id
  }

  private func check(_ code: Int32) throws(ConnectionFault) {
    let systemCode = errno
    switch code {
    case MOSQ_ERR_SUCCESS.rawValue, MOSQ_ERR_CONN_PENDING.rawValue: return
    case MOSQ_ERR_CONN_LOST.rawValue: throw Self.lost
    case MOSQ_ERR_KEEPALIVE.rawValue: throw ConnectionFault(reason: "the broker does not answer")
    case MOSQ_ERR_TLS.rawValue where Self.networkErrors.contains(systemCode),
      MOSQ_ERR_ERRNO.rawValue:
      throw ConnectionFault(reason: SystemError.text(of: systemCode))
    default:
      let text = unsafe mosquitto_strerror(code).map { unsafe String(cString: $0) } ?? "error \(code)"
      throw ConnectionFault(reason: text)
    }
  }
}
