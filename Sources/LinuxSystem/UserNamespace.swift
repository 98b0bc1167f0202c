import Glibc

/// The user namespace that this process runs in (user_namespaces(7)).
package enum UserNamespace {
  /// The user as whom the kernel tells of everybody that has no number in this namespace; nil where every user has one.
  package static func unnamedUser() throws(SystemError) -> UInt32? {
    // Without the file the kernel knows no user namespaces.
    guard let map = try numbers(in: "/proc/self/uid_map") else { return nil }
    // Lines of three: the first user here, the first outside, and how many.
    let mapped = stride(from: 2, to: map.count, by: 3).reduce(0) { $0 + map[$1] }
    // All but the last, which is nobody's.
    guard mapped < Int(UInt32.max) else { return nil }
    // The kernel's default, where /proc shows processes alone (`subset=pid`, proc(5)).
    return try numbers(in: "/proc/sys/kernel/overflowuid")?.first.flatMap { UInt32(exactly: $0) } ?? 65_534
  }

  private static func numbers(in path: String) throws(SystemError) -> [Int]? {
    guard case .bytes(let bytes) = try ConfigurationAccess.read(path: path, limit: 65_536) else { return nil }
    return String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isWhitespace).compactMap { Int($0) }
  }
}
