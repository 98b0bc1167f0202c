/// A service manager's request for a credential of a unit: `LoadCredential=NAME:SOCKET` in the unit's file
/// (systemd.exec(5)).
///
/// The service manager connects from a socket with the abstract name `HEXADECIMAL/unit/UNIT/NAME`, and sends nothing.
/// Any process can have such a name, so ``content(for:)`` compares the name with the attested peer.
package struct CredentialRequest: Equatable, Sendable {
  /// The name of the unit.
  package let unit: Text
  /// The name of the credential.
  package let name: Text

  /// The attribute `service` of the items that are credentials.
  package static let service: Text = "credential"
  /// The beginning of the names that stand for identifiers and proofs.
  package static let reservedBeginning: Text = "identityd."

  /// The identifiers that a service manager can request.
  package enum Identifier: String, CaseIterable, Sendable {
    case device, installation, vendor, boot, session
  }

  /// The contents of a credential.
  package enum Content: Equatable, Sendable {
    /// The secret that is stored for the unit.
    case secret
    /// The identifier of the app that the main process of the unit is.
    case identifier(Identifier)
    /// A proof of this app, for the relying party that the settings name so, or that has this name.
    case proof(for: Text)
  }

  private static let proofBeginning = Array("proof.".utf8)
  private static let middle = Array("/unit/".utf8)
  /// The greatest number of digits in the name: the service manager writes 64 random bits without leading zeros.
  private static let mostDigits = 16

  /// Parses the abstract name of a peer's socket, without the NUL before it.
  ///
  /// - Returns: nil if a service manager gives no such name to its socket.
  package init?(peerName: [UInt8]) {
    let digits = peerName.prefix { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    let rest = peerName[digits.endIndex...]
    guard (1...Self.mostDigits).contains(digits.count), rest.starts(with: Self.middle) else { return nil }
    let words = rest.dropFirst(Self.middle.count).split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    guard words.count == 2, words.allSatisfy({ !$0.isEmpty }) else { return nil }
    // Other bytes than UTF-8 are replaced, so they name no item. They are a request all the same: without an answer, the
    // unit would start.
    unit = Text(String(decoding: words[0], as: UTF8.self))
    name = Text(String(decoding: words[1], as: UTF8.self))
  }

  /// Returns whether a peer may be a service manager, so that its answer can make the start of a unit fail: that of a
  /// system, also in a container, or that of the user who owns the unit.
  package static func mayBeManager(_ peer: Peer) -> Bool { peer.userID == 0 || peer.userID == peer.place.owner }

  /// Returns the content that the name stands for, if the peer is the process that fetches credentials for the unit.
  ///
  /// The service manager lets this process connect from the unit's own cgroup, as the user of the service manager.
  ///
  /// - Throws: `denied` for another peer; `conflict` for units of identityd, which cannot wait for themselves, and for
  ///   reserved names.
  package func content(for peer: Peer) throws(Refusal) -> Content {
    guard !peer.place.isContained, peer.place.unit == unit, peer.place.owner ?? 0 == peer.userID else {
      throw .denied(app: peer.app, userID: peer.userID, grant: "the control group of \(unit)")
    }
    guard !Self.isOwn(unit) else { throw .conflict("identityd gives no credentials to its own units") }
    guard name.bytes.starts(with: Self.reservedBeginning.bytes) else { return .secret }
    let rest = name.bytes.dropFirst(Self.reservedBeginning.bytes.count)
    if rest.starts(with: Self.proofBeginning), rest.count > Self.proofBeginning.count {
      return .proof(for: Text(trusted: Array(rest.dropFirst(Self.proofBeginning.count))))
    }
    guard let identifier = Identifier(rawValue: "\(Text(trusted: Array(rest)))") else {
      let known = Identifier.allCases.map { "\(Self.reservedBeginning)\($0.rawValue)" } + ["identityd.proof.AUDIENCE"]
      throw .conflict(
        "names that begin with identityd. are reserved, and this version knows \(known.joined(separator: ", "))")
    }
    return .identifier(identifier)
  }

  /// Returns the access group of a unit's credentials. It does not depend on manifests, so that credentials stay when
  /// a manifest comes or goes.
  ///
  /// - Parameter owner: the user whose manager runs the unit; nil for the system's.
  package static func group(of unit: Text, owner: UInt32?) -> Text {
    owner.map { Text("unit:\(unit)@\($0)") } ?? Text("unit:\(unit)")
  }

  /// Returns the unit and the owner that ``group(of:owner:)`` makes a group of; nil for any other group.
  package static func unit(of group: Text) -> (unit: Text, owner: UInt32?)? {
    let mark = Self.group(of: "", owner: nil)
    guard group.bytes.starts(with: mark.bytes) else { return nil }
    let owner = group.owner
    let end = owner.map { "@\($0)".utf8.count } ?? 0
    let unit = Text(trusted: Array(group.bytes.dropFirst(mark.bytes.count).dropLast(end)))
    return Self.group(of: unit, owner: owner) == group ? (unit, owner) : nil
  }

  /// Returns whether a unit belongs to identityd itself.
  package static func isOwn(_ unit: Text) -> Bool {
    ["identityd.", "identityd-", "identity-fleet.", "identity-fleet-"].contains { unit.bytes.starts(with: $0.utf8) }
  }
}

/// The policy for a credential that is not stored (`[Credentials] Missing=`).
package enum MissingCredential: String, CaseIterable, Sendable {
  /// The start of the unit fails.
  case fail
  /// The credential is empty.
  case empty
}
