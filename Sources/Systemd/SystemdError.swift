import Glibc

/// A failed call to libsystemd.
package struct SystemdError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The name of the function.
  package let call: String
  /// The errno value, as a positive number.
  package let code: Int32

  /// The error in words: `sd_event_new: Cannot allocate memory`.
  package var description: String {
    guard let text = unsafe strerror(code) else { return "\(call): error \(code)" }
    return unsafe "\(call): \(String(cString: text))"
  }
}

/// Returns the result of a libsystemd function. Throws if the result is a negative errno value.
@discardableResult
func checked(_ call: String, _ result: Int32) throws(SystemdError) -> Int32 {
  guard result >= 0 else { throw SystemdError(call: call, code: -result) }
  return result
}
