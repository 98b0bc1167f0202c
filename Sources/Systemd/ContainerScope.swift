/// A container, recognized by the cgroup names that container runtimes use. ``GroupPlace`` finds the container of a
/// process.
package struct ContainerScope: Hashable, Sendable {
  /// The runtime's ID, or the name of a machine, of an LXC container, or of a scope whose ID is no ID of a container.
  package let id: String
  /// The user whose manager runs the container; nil for a container of the system.
  ///
  /// Below `user@UID.service` that user chooses all names.
  package let owner: UInt32?

  /// The ID or name, followed by `@UID` for a user's container.
  package var name: String { owner.map { "\(id)@\($0)" } ?? id }

  /// The prefixes that runtimes put before a container's ID in the name of its scope or folder.
  private static let runtimes = [
    "docker-", "libpod-", "crio-", "cri-containerd-", "nerdctl-", "buildkit-", "buildah-", "runc-", "crun-", "youki-",
  ]
  /// The prefixes of the name of a monitor, which is a process of the host (conmon(8)). An ID of a container follows.
  private static let monitors = ["libpod-conmon-", "crio-conmon-"]
  /// The prefix of an LXC container's name. The monitor, a process of the host, is in another cgroup
  /// (lxc.container.conf(5)).
  private static let linuxContainer = "lxc.payload."
  /// The folders that contain only LXC containers, each named after its container.
  private static let linuxContainerFolders: Set<Substring> = ["lxc", "lxc.payload"]
  /// The folders in which runtimes place containers and nothing else but monitors.
  private static let runtimeFolders: Set<Substring> = ["docker", "buildkit", "libpod_parent", "kubepods.slice"]
  /// The folder of Kubernetes pods, and the folders in it that contain containers or further folders.
  private static let pods: Substring = "kubepods"
  private static let podClasses: Set<Substring> = ["burstable", "besteffort", "guaranteed"]
  /// The length of a container's ID, in hexadecimal digits.
  private static let idLength = 64

  init(id: String, owner: UInt32?) {
    self.id = id
    self.owner = owner
  }

  /// Returns the ID or name of the container that a cgroup was made for.
  ///
  /// - Parameters:
  ///   - part: the name of the cgroup.
  ///   - above: the names of the cgroups that contain it, none of which was made for a container.
  /// - Returns: nil if the cgroup was made for no container.
  static func id(of part: Substring, in above: ArraySlice<Substring>) -> String? {
    let folder = above.last ?? ""
    // An administrator names an LXC container, and may name it like a unit.
    if part.hasPrefix(linuxContainer) { return safe(Array(part.dropFirst(linuxContainer.count).utf8)) }
    if linuxContainerFolders.contains(folder) { return safe(Array(part.utf8)) }
    let name: Substring
    switch UnitName(part)?.kind {
    case .scope: name = part.dropLast(".scope".count)
    case nil: name = part
    case .service, .slice, .other: return nil
    }
    if isMonitor(name, in: folder) { return nil }
    let machine = "machine-"
    if name != part, name.hasPrefix(machine) { return safe(unescaped(name.dropFirst(machine.count))) }
    // The cgroup driver that does not use systemd names the folder after the ID alone.
    if isID(name) { return String(name) }
    if let prefix = runtimes.first(where: { name.hasPrefix($0) }) {
      let id = name.dropFirst(prefix.count)
      // With its prefix, the name of another tool's container cannot pass for the name of a machine.
      return isID(id) ? String(id) : safe(unescaped(name))
    }
    if folder == "machine.slice" || folder.hasPrefix("machine-") && folder.hasSuffix(".slice") {
      return safe(unescaped(name))
    }
    // With its folder, for the same reason.
    return isForContainers(part, above, folder) ? safe(unescaped(Substring("\(folder)-\(name)"))) : nil
  }

  /// Returns whether a cgroup contains the monitor of a container.
  private static func isMonitor(_ name: Substring, in folder: Substring) -> Bool {
    monitors.contains { name.hasPrefix($0) && isID(name.dropFirst($0.count)) }
      || folder == "libpod_parent" && name == "conmon"
  }

  /// Returns whether only containers have cgroups at this place, whatever their names.
  private static func isForContainers(
    _ part: Substring, _ above: ArraySlice<Substring>, _ folder: Substring
  ) -> Bool {
    if folder == "docker" && part == "buildkit" { return false }
    if runtimeFolders.contains(folder) { return true }
    if folder.hasPrefix("kubepods-"), folder.hasSuffix(".slice") { return true }
    return above.contains(pods) && !podClasses.contains(part) && !part.hasPrefix("pod")
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
        let value = hexadecimal(rest.dropFirst().prefix(2))
      else {
        bytes.append(byte)
        continue
      }
      bytes.append(value)
      rest = rest.dropFirst(3)
    }
    return bytes
  }

  /// Returns the value of two hexadecimal digits; nil for any other bytes.
  private static func hexadecimal(_ digits: ArraySlice<UInt8>) -> UInt8? {
    guard digits.count == 2, let first = digits.first, first != UInt8(ascii: "+"), first != UInt8(ascii: "-") else {
      return nil
    }
    return UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
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
