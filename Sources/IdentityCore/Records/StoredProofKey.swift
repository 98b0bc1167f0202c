/// A key pair that signs proofs, is to sign them, or has signed some that are still valid.
///
/// It belongs to a device identifier and a machine-id. Under another one of either, it is locked until both are back.
package struct StoredProofKey: StoredRecord, Equatable {
  package static let table = RecordTable("proof_key", of: Self.self, digestIndex: 19, .proofs, since: 6)

  /// Greater than the number of every earlier key that is kept.
  package internal(set) var number: Int64
  /// The key pair.
  package internal(set) var pair: ProofKeyPair
  /// The identifier of the device, shared by its apps, for which the key was made.
  package internal(set) var device: UUID
  /// The digest of the machine-id on which the key was made; nil if the machine had none.
  package internal(set) var machine: Text?
  /// The time at which the key was made.
  package internal(set) var created: Timestamp
  /// The time from which the key signs.
  package internal(set) var signs: Timestamp
  /// The time at which the key leaves the key set, when the last proof that it has signed has expired; nil for the newest
  /// key.
  package internal(set) var leaves: Timestamp?

  package init(
    number: Int64, pair: ProofKeyPair, device: UUID, machine: Text?, created: Timestamp, signs: Timestamp,
    leaves: Timestamp? = nil
  ) {
    self.number = number
    self.pair = pair
    self.device = device
    self.machine = machine
    self.created = created
    self.signs = signs
    self.leaves = leaves
  }

  package init() {
    self.init(number: 0, pair: ProofKeyPair(), device: .zero, machine: nil, created: .epoch, signs: .epoch)
  }

  package mutating func visit(_ fields: inout some FieldVisitor) {
    fields.field("n", &number)
    fields.field("place", &pair.place, .lasting)
    fields.field("identifier", &pair.identifier, .lasting)
    fields.field("x", &pair.x, .lasting)
    fields.field("y", &pair.y, .lasting)
    fields.field("sealed", &pair.sealed, .lasting)
    fields.field("device", &device, .lasting)
    fields.field("machine", &machine, .lasting)
    fields.field("created", &created, .lasting)
    fields.field("signs", &signs)
    fields.field("leaves", &leaves)
  }
}

/// The places in which proof keys sign (`[Proof] Key=` of identityd.conf(5)).
package enum ProofKeyPlace: String, StoredWord, CaseIterable, Sendable {
  /// The process, by OpenSSL's libcrypto.
  case software
  /// A TPM 2.0, which alone has the private key.
  case tpm2
}

/// A key pair on P-256 that was made for proofs.
package struct ProofKeyPair: Equatable, Sendable {
  /// The place in which the key signs.
  package internal(set) var place: ProofKeyPlace
  /// The thumbprint of the public key in Base64URL (RFC 7638), which names the key.
  package internal(set) var identifier: Text
  /// The coordinates of the public key in Base64URL (RFC 7518, section 6.2.1).
  package internal(set) var x: Text
  package internal(set) var y: Text
  /// The private key, encrypted with the data key.
  package internal(set) var sealed: [UInt8]

  package init(place: ProofKeyPlace = .software, identifier: Text, x: Text, y: Text, sealed: [UInt8]) {
    self.place = place
    self.identifier = identifier
    self.x = x
    self.y = y
    self.sealed = sealed
  }

  init() { self.init(identifier: .empty, x: .empty, y: .empty, sealed: []) }
}
