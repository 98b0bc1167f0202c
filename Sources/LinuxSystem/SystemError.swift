import Glibc

/// A failed system call with its error code.
package struct SystemError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The call, with its object if that helps: `open /var/lib/identityd`.
  package let call: String
  /// The errno value.
  package let code: Int32

  /// The errno value of a refusal by a file's mode, for callers without the C library (EACCES).
  package static let accessDenied: Int32 = EACCES

  package init(call: String, code: Int32) {
    self.call = call
    self.code = code
  }

  /// The error in words: `open /var/lib/identityd: Permission denied`.
  package var description: String { "\(call): \(Self.text(of: code))" }

  /// Returns the C library's text for an errno value.
  package static func text(of code: Int32) -> String {
    guard let text = unsafe strerror(code) else { return "error \(code)" }
    return unsafe String(cString: text)
  }
}

/// Runs a system call, and repeats it when a signal interrupts it. Not for `close`, which must not be repeated.
///
/// - Parameters:
///   - name: the name of the call in the error.
///   - body: the call, which returns -1 and sets errno on failure.
/// - Throws: the errno value of any failure but EINTR.
@discardableResult
package func system<Result: SignedInteger>(
  _ name: @autoclosure () -> String, _ body: () -> Result
) throws(SystemError) -> Result {
  while true {
    let result = body()
    let code = errno
    guard result == -1 else { return result }
    guard code == EINTR else { throw SystemError(call: name(), code: code) }
  }
}
