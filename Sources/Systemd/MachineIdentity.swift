import CSystemd
import Glibc

/// The IDs of the machine and of its boot (machine-id(5), sd_id128_get_machine(3)).
package enum MachineIdentity {
  /// The reason why there is no usable machine-id, with one case for each state of the file.
  package enum Failure: Error, Equatable, Sendable, CustomStringConvertible {
    case missing
    case empty
    case uninitialized
    case malformed
    case unreadable(Int32)

    /// The reason in words, for an operator.
    package var description: String {
      switch self {
      case .missing: "/etc/machine-id is missing"
      case .empty: "/etc/machine-id is empty or all zero"
      case .uninitialized: "/etc/machine-id says 'uninitialized': the system is still in its first boot"
      case .malformed: "/etc/machine-id is not 32 hexadecimal digits"
      case .unreadable(let code): SystemdError(call: "read /etc/machine-id", code: code).description
      }
    }

    init(code: Int32) {
      switch code {
      case ENOENT: self = .missing
      case ENOMEDIUM: self = .empty
      case ENOPKG: self = .uninitialized
      case EUCLEAN, EINVAL: self = .malformed
      default: self = .unreadable(code)
      }
    }
  }

  /// Derives 128 bits from the machine-id for one application, so that the machine-id itself stays secret.
  ///
  /// The result is an HMAC-SHA256 over the application's ID, with the machine-id as
  /// the key (sd_id128_get_machine_app_specific(3)).
  ///
  /// - Parameter application: the application's own ID, both halves most significant byte first.
  package static func derived(for application: (high: UInt64, low: UInt64)) throws(Failure) -> (
    high: UInt64, low: UInt64
  ) {
    var derived = sd_id128_t()
    let code = unsafe sd_id128_get_machine_app_specific(bytes(of: application), &derived)
    guard code >= 0 else { throw Failure(code: -code) }
    return halves(of: derived)
  }

  /// Returns the machine-id itself, 16 bytes in the order of the text. machine-id(5) asks to keep
  /// the machine-id confidential.
  ///
  /// The only permitted use is as input of a hash, together with a secret. Never send or log the machine-id.
  package static func machineID() throws(Failure) -> [UInt8] {
    var machine = sd_id128_t()
    let code = unsafe sd_id128_get_machine(&machine)
    guard code >= 0 else { throw Failure(code: -code) }
    return unsafe withUnsafeBytes(of: &machine) { unsafe Array($0) }
  }

  /// Returns the kernel's ID of this boot.
  package static func boot() throws(SystemdError) -> (high: UInt64, low: UInt64) {
    var boot = sd_id128_t()
    try checked("sd_id128_get_boot", unsafe sd_id128_get_boot(&boot))
    return halves(of: boot)
  }

  /// `sd_id128_t` holds its bytes in the order of the text on every machine, regardless of the machine's byte order.
  private static func bytes(of id: (high: UInt64, low: UInt64)) -> sd_id128_t {
    sd_id128_t(qwords: (id.high.bigEndian, id.low.bigEndian))
  }

  private static func halves(of id: sd_id128_t) -> (high: UInt64, low: UInt64) {
    unsafe (UInt64(bigEndian: id.qwords.0), UInt64(bigEndian: id.qwords.1))
  }
}
