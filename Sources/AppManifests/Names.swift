import IdentityCore

// The syntax of names in a manifest.
extension Text {
  /// A description of the names that ``isManifestName`` accepts.
  static let manifestNames =
    "letters, digits, '.', '_' and '-', a letter or digit first, at most \(Bound.nameLength) bytes"

  /// Whether the text can be the ID of an app with a manifest, a vendor or an access group.
  ///
  /// Such a name has no ":", unlike the IDs of apps without a manifest.
  var isManifestName: Bool {
    guard let first = bytes.first, first.isLetterOrDigit, bytes.count <= Bound.nameLength else { return false }
    return bytes.allSatisfy { $0.isLetterOrDigit || "._-".utf8.contains($0) }
  }

  /// A description of the names that ``isServiceName`` accepts.
  static let serviceNames =
    "the name of a service, such as player.service, or of an instance of a template, such as player@one.service"

  /// Whether the text can be the name of a service (systemd.unit(5)).
  ///
  /// The name has letters, digits and `:-_.\`. The instance follows the first `@`. A template is not a service.
  var isServiceName: Bool {
    let end = ".service".utf8
    guard bytes.count <= 255, bytes.suffix(end.count).elementsEqual(end) else { return false }
    let name = bytes.dropLast(end.count)
    let at = UInt8(ascii: "@")
    guard let first = name.first, first != at, name.firstIndex(of: at) != name.indices.last else { return false }
    return name.allSatisfy { $0.isLetterOrDigit || ":-_.\\@".utf8.contains($0) }
  }

  /// A description of the names that ``isContainerName`` accepts.
  static let containerNames = "the name of a container: letters, digits, '.', '_' and '-', at most 255 bytes"

  /// Whether the text can be the name of a container in a cgroup.
  var isContainerName: Bool {
    !isEmpty && bytes.count <= 255 && bytes.allSatisfy { $0.isLetterOrDigit || "._-".utf8.contains($0) }
  }

  /// A description of the names that ``isUserName`` accepts.
  static let userNames = "the name of a user, not a number"

  /// Whether the text can be the name of a user, by the rules of useradd(8) with `--badname`.
  var isUserName: Bool {
    guard let first = bytes.first, first != UInt8(ascii: "-"), bytes.count <= 255 else { return false }
    return self != "." && self != ".." && !bytes.allSatisfy(\.isDigit)
      && bytes.allSatisfy { $0 > 0x20 && $0 != 0x7f && !",:/".utf8.contains($0) }
  }
}

extension UInt8 {
  fileprivate var isDigit: Bool { self >= UInt8(ascii: "0") && self <= UInt8(ascii: "9") }

  fileprivate var isLetterOrDigit: Bool {
    let lower = self | 0x20
    return isDigit || lower >= UInt8(ascii: "a") && lower <= UInt8(ascii: "z")
  }
}
