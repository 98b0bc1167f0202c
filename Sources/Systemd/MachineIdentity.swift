import CSystemd
import Glibc

/// What the machine says of itself (machine-id(5), sd_id128_get_machine(3)).
package enum MachineIdentity {
  /// Why there is no usable machine-id: one cause a state of the file.
  package enum Failure: Error, Equatable, Sendable, CustomStringConvertible {
    case missing
    case empty
    case uninitialized
    case malformed
    case unreadable(Int32)

    /// The cause, as an operator reads it.
    package var description: String {
      switch self {
      case .missing: "/etc/machine-id is missing"
      case .empty: "/etc/machine-id is empty or all zero"
      case .uninitialized: "/etc/machine-id says 'uninitialized': the system is still in its first boot"
      case .malformed: "/etc/machine-id is not 32 hexadecimal digits"
      case .unreadable(let code): SystemdError(call: "reading /etc/machine-id", code: code).description
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

  /// 128 bits derived from the machine-id for one application, so that the machine-id itself is told to nobody:
  /// HMAC-SHA256 keyed with it, over the application's ID (sd_id128_get_machine_app_specific(3)).
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

  /// The machine-id itself, 16 bytes in the order they are written (machine-id(5) wants it kept confidential).
  ///
  /// For nothing but to be hashed together with a secret: it is never told to anybody and never logged.
  package static func machineID() throws(Failure) -> [UInt8] {
    var machine = sd_id128_t()
    let code = unsafe sd_id128_get_machine(&machine)
    guard code >= 0 else { throw Failure(code: -code) }
    return unsafe withUnsafeBytes(of: &machine) { unsafe Array($0) }
  }

  /// The kernel's ID of this boot.
  package static func boot() throws(SystemdError) -> (high: UInt64, low: UInt64) {
    var boot = sd_id128_t()
    try checked("sd_id128_get_boot", unsafe sd_id128_get_boot(&boot))
    return halves(of: boot)
  }

  /// `sd_id128_t` holds its bytes in the order they are written, whatever the machine's own order is.
  private static func bytes(of id: (high: UInt64, low: UInt64)) -> sd_id128_t {
    sd_id128_t(qwords: (id.high.bigEndian, id.low.bigEndian))
  }

  private static func halves(of id: sd_id128_t) -> (high: UInt64, low: UInt64) {
    unsafe (UInt64(bigEndian: id.qwords.0), UInt64(bigEndian: id.qwords.1))
  }
}
