package import IdentityCore

/// The public proof keys of a device, which it publishes with its record and with its report for a site.
package struct PublishedKeys: Equatable, Sendable {
  /// The number of keys that count. A rotation has three at most: the former, the present and the next one.
  package static let most = 8

  /// The issuer that the proofs name: printable ASCII that needs no escape in JSON.
  package let issuer: Text
  /// The coordinates of each key's point, 64 bytes; the key that signs first is the first one.
  package let points: [[UInt8]]

  /// - Returns: nil without keys, or for an issuer with other characters.
  package init?(issuer: Text, points: [[UInt8]]) {
    guard issuer.isPlainInJSON, !points.isEmpty else { return nil }
    self.issuer = issuer
    self.points = Array(points.prefix(Self.most))
  }

  /// Reads the fields of a record or of a report; nil if there are none.
  package init?(_ fields: Fields) {
    guard let issuer = fields[.issuer].flatMap({ Text(validating: $0) }) else { return nil }
    self.init(issuer: issuer, points: fields.values(of: .proofKey))
  }

  /// Adds the keys to the fields of a message.
  package func add(to fields: inout Fields) {
    fields.set(.proofKey, points)
    fields[.issuer] = issuer.bytes
  }

  /// Whether the issuer names a device, so that no other device has the same one.
  package func names(_ device: UUID) -> Bool {
    let name = Array("\(device)".utf8)
    return (0..<max(0, issuer.bytes.count - name.count + 1)).contains { start in
      issuer.bytes[start..<start + name.count].elementsEqual(name)
    }
  }
}
