import Glibc

/// A system call failed: which, and with what code.
package struct SystemError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The call, and where it helps what it was about: `open /var/lib/identityd`.
  package let call: String
  /// The value of errno.
  package let code: Int32

  /// Puts an error together.
  package init(call: String, code: Int32) {
    self.call = call
    self.code = code
  }

  /// `open /var/lib/identityd: Permission denied`.
  package var description: String { "\(call): \(Self.text(of: code))" }

  /// What the C library says of an errno value.
  package static func text(of code: Int32) -> String {
    guard let text = unsafe strerror(code) else { return "error \(code)" }
    return unsafe String(cString: text)
  }
}

/// Runs a system call, trying again when a signal interrupts it. Not for `close`, which must not be repeated.
///
/// - Parameters:
///   - name: what to call it in the error.
///   - body: the call; it returns -1 and sets errno when it fails.
/// - Throws: the errno value of any other failure.
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
