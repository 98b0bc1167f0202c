import COpenSSL
import Foundation
import Glibc

/// The certificate of the brokers on the loopback interface, and what a device needs to check it.
@safe final class TransportSecurity {
  private let folder: URL
  private let context: OpaquePointer
  /// The path of the certificate, which is its own authority.
  var certificate: String { folder.appending(path: "certificate.pem").path }
  /// The path of the certificate's key.
  var key: String { folder.appending(path: "key.pem").path }

  /// Makes a certificate with a key on P-256, as certificate authorities issue them today.
  init() throws {
    // The library writes without MSG_NOSIGNAL, also to a broker that is gone.
    _ = Glibc.signal(SIGPIPE, SIG_IGN)
    folder = FileManager.default.temporaryDirectory.appending(path: "fleet-bench-\(Foundation.UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    guard let method = unsafe TLS_client_method(), let context = unsafe SSL_CTX_new(method) else {
      throw BenchError("no memory for TLS")
    }
    unsafe self.context = context
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/openssl")
    process.arguments = [
      "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
      "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-out", certificate, "-keyout", key,
    ]
    process.standardError = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    // The flags of the mode are those that a buffer needs which moves as it grows.
    let mode = Int(SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS)
    unsafe SSL_CTX_ctrl(context, SSL_CTRL_MODE, mode, nil)
    unsafe SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
    guard process.terminationStatus == 0, unsafe SSL_CTX_load_verify_locations(context, certificate, nil) == 1 else {
      throw BenchError("openssl makes no certificate")
    }
  }

  deinit {
    unsafe SSL_CTX_free(context)
    try? FileManager.default.removeItem(at: folder)
  }

  /// Returns the TLS of a connection, as the client.
  func session(over socket: Int32) throws -> SecureSession {
    guard let session = unsafe SSL_new(context), unsafe SSL_set_fd(session, socket) == 1,
      unsafe X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), "127.0.0.1") == 1
    else { throw BenchError("no memory for TLS") }
    unsafe SSL_set_connect_state(session)
    return unsafe SecureSession(session)
  }
}

/// The TLS of one connection.
@safe final class SecureSession {
  /// The end of an attempt to move bytes.
  enum Outcome: Equatable {
    case moved(Int)
    case waitsForBytes, waitsForRoom
    case ended
  }

  private let session: OpaquePointer

  fileprivate init(_ session: OpaquePointer) { unsafe self.session = session }

  deinit { unsafe SSL_free(session) }

  /// The bytes that went each way, with those of TLS.
  var count: (sent: Int, received: Int) {
    unsafe (Int(BIO_number_written(SSL_get_wbio(session))), Int(BIO_number_read(SSL_get_rbio(session))))
  }

  func read(into chunk: inout [UInt8]) -> Outcome {
    ERR_clear_error()
    return unsafe outcome(of: SSL_read(session, &chunk, Int32(chunk.count)))
  }

  func write(_ bytes: [UInt8]) -> Outcome {
    ERR_clear_error()
    return unsafe outcome(of: SSL_write(session, bytes, Int32(bytes.count)))
  }

  private func outcome(of count: Int32) -> Outcome {
    if count > 0 { return .moved(Int(count)) }
    return switch unsafe SSL_get_error(session, count) {
    case SSL_ERROR_WANT_READ: .waitsForBytes
    case SSL_ERROR_WANT_WRITE: .waitsForRoom
    default: .ended
    }
  }
}
