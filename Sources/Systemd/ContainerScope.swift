/// The container that a cgroup belongs to, recognized by the cgroup names that container runtimes use.
///
/// Only a container outside any service counts. A container of a service (a quadlet,
/// `systemd-nspawn@`) counts as the service.
package struct ContainerScope: Hashable, Sendable {
  /// The runtime's ID, or the name of a machine or of an LXC container.
  package let id: String
  /// The user whose manager runs the container; nil for a container of the system.
  ///
  /// Below `user@UID.service` that user chooses all names.
  package let owner: UInt32?

  /// The ID or name, followed by `@UID` for a user's container.
  package var name: String { owner.map { "\(id)@\($0)" } ?? id }

  /// The prefixes of a container's ID in the name of a runtime's scope or folder.
  private static let runtimes = ["docker-", "libpod-", "crio-", "cri-containerd-", "nerdctl-"]
  /// The prefixes of an LXC container's name. The monitor, a process of the host, is in
  /// another cgroup (lxc.container.conf(5)).
  private static let linuxContainers = ["lxc.payload."]
  /// The length of a container's ID, in hexadecimal digits.
  private static let idLength = 64

  /// Finds the container in the path of a cgroup.
  ///
  /// - Parameter path: the path of the cgroup in its hierarchy, as in `/proc/PID/cgroup`.
  /// - Returns: nil if the path leads to a service first, or contains no container.
  package init?(group path: String) {
    var owner: UInt32?
    var folder = Substring()
    for part in path.split(separator: "/") {
      if let user = Self.owner(ofManager: part) {
        owner = user
      } else if part.hasSuffix(".service") {
        return nil
      } else if let id = Self.id(of: part, in: folder) {
        self.id = id
        self.owner = owner
        return
      }
      folder = part
    }
    return nil
  }

  private static func owner(ofManager part: Substring) -> UInt32? {
    guard part.hasPrefix("user@"), part.hasSuffix(".service") else { return nil }
    return UInt32(part.dropFirst("user@".count).dropLast(".service".count))
  }

  private static func id(of part: Substring, in folder: Substring) -> String? {
    let isScope = part.hasSuffix(".scope")
    let name = isScope ? part.dropLast(".scope".count) : part
    // A runtime's monitor is a process of the host (conmon(8)).
    if name.hasPrefix("libpod-conmon-") || name.hasPrefix("crio-conmon-") { return nil }
    if isScope, name.hasPrefix("machine-") { return safe(unescaped(name.dropFirst("machine-".count))) }
    for prefix in linuxContainers where part.hasPrefix(prefix) { return safe(Array(part.dropFirst(prefix.count).utf8)) }
    if folder == "lxc" || folder == "lxc.payload" { return safe(Array(part.utf8)) }
    // The cgroup driver that does not use systemd names the folder after the ID alone.
    let candidate = runtimes.first { name.hasPrefix($0) }.map { name.dropFirst($0.count) } ?? name
    if isID(candidate) { return String(candidate) }
    return folder == "machine.slice" && !part.hasSuffix(".slice") ? safe(unescaped(name)) : nil
  }

  private static func isID(_ text: Substring) -> Bool {
    text.utf8.count == idLength
      && text.utf8.allSatisfy {
        $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") || $0 >= UInt8(ascii: "a") && $0 <= UInt8(ascii: "f")
      }
  }

  /// Resolves systemd's escapes in the name of a unit (systemd.unit(5), "string escaping").
  private static func unescaped(_ name: Substring) -> [UInt8] {
    var bytes: [UInt8] = []
    var rest = Array(name.utf8)[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "\\"), rest.first == UInt8(ascii: "x"),
        let value = UInt8(String(decoding: rest.dropFirst().prefix(2), as: UTF8.self), radix: 16)
      else {
        bytes.append(byte)
        continue
      }
      bytes.append(value)
      rest = rest.dropFirst(3)
    }
    return bytes
  }

  /// Returns a name that cannot be mistaken for another one: all but letters, digits, `.`, `_` and `-` are escaped.
  private static func safe(_ name: [UInt8]) -> String {
    name.map { byte in
      let character = Character(UnicodeScalar(byte))
      let isPlain = byte < 0x80 && (character.isLetter || character.isNumber || "._-".contains(character))
      let hexadecimal = String(byte, radix: 16)
      return isPlain ? String(character) : "\\x" + (byte < 16 ? "0" : "") + hexadecimal
    }.joined()
  }
}
