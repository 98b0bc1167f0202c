import Glibc

/// The environment variables of this process.
package enum Environment {
  /// The value of a variable, or nil if the variable is unset or empty.
  package static subscript(_ name: String) -> String? {
    guard let value = unsafe getenv(name) else { return nil }
    let text = unsafe String(cString: value)
    return text.isEmpty ? nil : text
  }
}
