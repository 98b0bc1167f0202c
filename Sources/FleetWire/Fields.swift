/// The types of fields in a message that this release knows. Numbers are big-endian.
///
/// The numbers 6, 11 and 24 are reserved: no release writes them.
package enum FieldType: UInt8, Sendable, CaseIterable {
  /// The display name of the author, and in an invitation that of the account: UTF-8, 1 to 255 bytes.
  case name = 1
  /// The Ed25519 key that checks the signature of the message: 32 bytes.
  case signingKey = 2
  /// The X25519 key to which messages for the author are sealed: 32 bytes.
  case boxKey = 3
  /// The time at which the device joined the account: milliseconds since 1970, 8 bytes.
  case joined = 4
  /// The fingerprint of the author's machine: 16 bytes.
  case home = 5
  /// The presence of a device: one byte, 1 if the device is connected and 0 if not.
  case state = 7
  /// The operating system of the author: UTF-8, 1 to 64 bytes.
  case system = 8
  /// The UUID that a removed device has now: 16 bytes.
  case successor = 9
  /// The reason of a removal: one byte, see ``RemovalReason``.
  case reason = 10
  /// The author's finding that another device has its keys: one byte, see ``DeviceDescription/TwinMark``.
  case twin = 12
  /// The root of the account: 32 secret bytes.
  case root = 20
  /// The number of an epoch: 4 bytes.
  case epoch = 21
  /// The key of that epoch: 32 secret bytes.
  case epochKey = 22
  /// The key of that epoch, sealed to the X25519 key of one device: 80 bytes.
  case sealedBox = 23
  /// The number of devices in the account: 4 bytes.
  case rosterSize = 25
  /// The time after which an invitation is void: milliseconds since 1970, 8 bytes.
  case expiry = 26
  /// The version of `identityd`: UTF-8, 1 to 64 bytes.
  case daemon = 27
  /// The state of `identityd` in a word: UTF-8, 1 to 64 bytes.
  case status = 28
  /// Devices that were removed before an epoch, and get no key of it: 16 bytes each.
  case removed = 29
  /// An app with its version: see ``ReportedApp``. May occur several times.
  case app = 30
  /// A push token: see ``CarriedToken``. May occur several times.
  case token = 31
  /// A push token that its sender found invalid: see ``CarriedToken``. May occur several times.
  case invalidToken = 32
  /// A public proof key of the device: the coordinates of its point on P-256, 64 bytes. May occur several times.
  case proofKey = 33
  /// The issuer that the proofs of these keys name: printable ASCII, 1 to 255 bytes.
  case issuer = 34
  /// A summary of the records that the author knows: 16 bytes for each of the sixteen buckets of tags.
  case digest = 35
  /// The greatest version of envelopes that the author reads: one byte. Version 1 without the field.
  case readableVersion = 36

  /// Whether a message may have several fields of the type.
  var isRepeatable: Bool { [.app, .token, .invalidToken, .proofKey].contains(self) }

  /// The permitted numbers of bytes.
  var lengths: ClosedRange<Int> {
    switch self {
    case .name: 1...255
    case .signingKey, .boxKey, .root, .epochKey: 32...32
    case .joined, .expiry: 8...8
    case .home, .successor: 16...16
    case .state, .reason, .twin, .readableVersion: 1...1
    case .system: 1...64
    case .epoch, .rosterSize: 4...4
    case .sealedBox: 80...80
    case .daemon, .status: 1...64
    case .removed: 16...1_024
    case .app: 7...1_024
    case .token, .invalidToken: 13...5_120
    case .proofKey: 64...64
    case .issuer: 1...255
    case .digest: 256...256
    }
  }
}

/// A field: a type, and up to 65,535 bytes.
package struct Field: Equatable, Sendable {
  /// The type, which this release may not know. Never 0, which ends the fields.
  package let type: UInt8
  /// The value.
  package let value: [UInt8]
}

/// The fields of a message, in the order of their types.
///
/// A field of most known types occurs once. Fields of unknown types are kept.
package struct Fields: Equatable, Sendable {
  /// The fields.
  package private(set) var all: [Field] = []

  package init() {}

  /// The value of a field; nil if there is none. A new value replaces the earlier one.
  package subscript(type: FieldType) -> [UInt8]? {
    get { all.first { $0.type == type.rawValue }?.value }
    set {
      all.removeAll { $0.type == type.rawValue }
      guard let newValue else { return }
      let index = all.firstIndex { $0.type > type.rawValue } ?? all.endIndex
      all.insert(Field(type: type.rawValue, value: newValue), at: index)
    }
  }

  /// The values of all fields of a type.
  func values(of type: FieldType) -> [[UInt8]] { all.filter { $0.type == type.rawValue }.map(\.value) }

  /// Replaces all fields of a type that may occur several times.
  mutating func set(_ type: FieldType, _ values: [[UInt8]]) {
    self[type] = nil
    let index = all.firstIndex { $0.type > type.rawValue } ?? all.endIndex
    all.insert(contentsOf: values.map { Field(type: type.rawValue, value: $0) }, at: index)
  }

  /// Takes a value out; nil if there is none. Unless the fields were copied, the caller has the only copy of the value.
  package mutating func remove(_ type: FieldType) -> [UInt8]? {
    guard let index = all.firstIndex(where: { $0.type == type.rawValue }) else { return nil }
    return all.remove(at: index).value
  }

  /// Whether each value of a known type has a permitted length.
  var arePermitted: Bool {
    all.allSatisfy { FieldType(rawValue: $0.type)?.lengths.contains($0.value.count) ?? true }
  }

  /// The number of encoded bytes.
  var length: Int { all.reduce(1) { $0 + 3 + $1.value.count } }

  /// Appends the encoded fields with the zero that ends them.
  func append(to bytes: inout [UInt8]) {
    for field in all {
      bytes.append(field.type)
      bytes += UInt16(truncatingIfNeeded: field.value.count).bigEndianBytes
      bytes += field.value
    }
    bytes.append(0)
  }

  /// Parses fields up to the zero that ends them.
  ///
  /// - Parameter bytes: the fields and the zeros after them.
  init(parsing bytes: ArraySlice<UInt8>) throws(Rejection) {
    var rest = bytes
    while let type = rest.popFirst() {
      // The padding is shorter than a block, and so each plaintext has one form only.
      guard type != 0 else {
        guard rest.count < Body.blockLength, rest.allSatisfy({ $0 == 0 }) else { throw .fields }
        return
      }
      guard rest.count >= 2 else { throw .fields }
      let length = Int(UInt16(bigEndian: rest.prefix(2)))
      rest = rest.dropFirst(2)
      guard rest.count >= length else { throw .fields }
      try append(Field(type: type, value: Array(rest.prefix(length))))
      rest = rest.dropFirst(length)
    }
    throw .fields
  }

  private mutating func append(_ field: Field) throws(Rejection) {
    let known = FieldType(rawValue: field.type)
    if let last = all.last {
      guard field.type > last.type || field.type == last.type && known?.isRepeatable ?? true else { throw .fields }
    }
    if let known {
      guard known.lengths.contains(field.value.count) else { throw .fields }
    }
    all.append(field)
  }
}
