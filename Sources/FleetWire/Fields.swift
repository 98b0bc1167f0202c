/// The types of fields in a message that this release knows.
package enum FieldType: UInt8, Sendable, CaseIterable {
  case name = 1
  case signingKey = 2
  case boxKey = 3
  case joined = 4
  case home = 5
  case state = 7
  case system = 8
  case successor = 9
  case reason = 10
  case twin = 12
  case root = 20
  case epoch = 21
  case epochKey = 22
  case sealedBox = 23
  case rosterSize = 25
  case expiry = 26

  /// The permitted numbers of bytes.
  var lengths: ClosedRange<Int> {
    switch self {
    case .name: 1...255
    case .signingKey, .boxKey, .root, .epochKey: 32...32
    case .joined, .expiry: 8...8
    case .home, .successor: 16...16
    case .state, .reason, .twin: 1...1
    case .system: 1...64
    case .epoch, .rosterSize: 4...4
    case .sealedBox: 80...80
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
/// A field of a known type occurs once. Fields of unknown types are kept.
package struct Fields: Equatable, Sendable {
  /// The fields.
  package private(set) var all: [Field] = []

  /// Creates an empty list.
  package init() {}

  /// The value of a field; nil if there is none. A new value replaces the earlier one.
  package subscript(type: FieldType) -> [UInt8]? {
    get { all.first { $0.type == type.rawValue }?.value }
    set {
      all.removeAll { $0.type == type.rawValue }
      guard let newValue else { return }
      let place = all.firstIndex { $0.type > type.rawValue } ?? all.endIndex
      all.insert(Field(type: type.rawValue, value: newValue), at: place)
    }
  }

  /// The encoded fields with the zero that ends them.
  var bytes: [UInt8] {
    all.flatMap { [$0.type] + UInt16(truncatingIfNeeded: $0.value.count).bigEndianBytes + $0.value } + [0]
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
      guard field.type > last.type || field.type == last.type && known == nil else { throw .fields }
    }
    if let known {
      guard known.lengths.contains(field.value.count) else { throw .fields }
    }
    all.append(field)
  }
}
