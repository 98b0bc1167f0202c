import Glibc

/// The user namespace of this process (user_namespaces(7)).
package enum UserNamespace {
  /// Returns the user ID that the kernel reports for every user without an ID in this namespace;
  /// nil if every user has one.
  package static func unnamedUser() throws(SystemError) -> UInt32? {
    // A kernel without user namespaces does not have the file.
    guard let map = try numbers(in: "/proc/self/uid_map") else { return nil }
    // Each line has three numbers: the first ID inside, the first ID outside, and the number of IDs.
    let mapped = stride(from: 2, to: map.count, by: 3).reduce(0) { $0 + map[$1] }
    // The highest user ID belongs to no user.
    guard mapped < Int(UInt32.max) else { return nil }
    // 65534 is the kernel's default, for a /proc that shows only processes (`subset=pid`, proc(5)).
    return try numbers(in: "/proc/sys/kernel/overflowuid")?.first.flatMap { UInt32(exactly: $0) } ?? 65_534
  }

  private static func numbers(in path: String) throws(SystemError) -> [Int]? {
    guard case .bytes(let bytes) = try ConfigurationAccess.read(path: path, limit: 65_536) else { return nil }
    return String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isWhitespace).compactMap { Int($0) }
  }
}
