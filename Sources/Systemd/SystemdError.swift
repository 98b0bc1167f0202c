import Glibc

/// A call to libsystemd failed.
package struct SystemdError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The function.
  package let call: String
  /// The errno value, positive.
  package let code: Int32

  /// `sd_event_new: Cannot allocate memory`.
  package var description: String {
    guard let text = unsafe strerror(code) else { return "\(call): error \(code)" }
    return unsafe "\(call): \(String(cString: text))"
  }
}

/// Passes on what a function of libsystemd returned; negative values are errno values.
@discardableResult
func checked(_ call: String, _ result: Int32) throws(SystemdError) -> Int32 {
  guard result >= 0 else { throw SystemdError(call: call, code: -result) }
  return result
}
