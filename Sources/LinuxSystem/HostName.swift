import Glibc

/// The name of this machine.
package enum HostName {
  /// The name (gethostname(2)); nil if there is none.
  package static var current: String? {
    var name = [CChar](repeating: 0, count: 256)
    guard unsafe gethostname(&name, name.count - 1) == 0, name[0] != 0 else { return nil }
    return String(validating: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
