import CLinux
import Glibc

/// The environment variables of this process.
package enum Environment {
  /// The value of a variable, or nil if the variable is unset or empty.
  package static subscript(_ name: String) -> String? {
    guard let text = value(of: name), !text.isEmpty else { return nil }
    return text
  }

  /// Returns the value of a variable, which may be empty, or nil if the variable is unset.
  package static func value(of name: String) -> String? {
    guard let value = unsafe getenv(name) else { return nil }
    return unsafe String(cString: value)
  }

  /// All variables, each as `NAME=value`.
  package static var all: [String] {
    var entries: [String] = []
    var next = unsafe clinux_environment()
    while let entry = unsafe next?.pointee {
      unsafe entries.append(String(cString: entry))
      unsafe next = next?.successor()
    }
    return entries
  }
}
