/// A rule for comparing versions (identityd-protocol(7), section "How versions are ordered").
package enum VersionOrder: String, CaseIterable, Sendable {
  /// Compares the fields between dots by the numbers that they begin with.
  case numeric
  /// Compares like `systemd-analyze compare-versions`
  /// (uapi-group.org/specifications/specs/version_format_specification).
  case linux

  /// The relation of a first version to a second one.
  package enum Outcome: String, Sendable {
    case less
    case equal
    case greater
  }

  /// Returns the relation of the first version to the second.
  package func compare(_ left: Text, _ right: Text) -> Outcome {
    switch self {
    case .numeric: Self.compareNumbers(left.bytes, right.bytes)
    case .linux: Self.compareSegments(left.bytes, right.bytes)
    }
  }
}

// MARK: - Numeric

extension VersionOrder {
  /// Compares field by field. Empty fields are skipped, and missing fields count as 0.
  private static func compareNumbers(_ left: [UInt8], _ right: [UInt8]) -> Outcome {
    let dot = UInt8(ascii: ".")
    let (lefts, rights) = (left.split(separator: dot), right.split(separator: dot))
    for place in 0..<max(lefts.count, rights.count) {
      let outcome = compareDigits(
        place < lefts.count ? lefts[place].prefix(while: \.isDigit) : [],
        place < rights.count ? rights[place].prefix(while: \.isDigit) : [])
      guard outcome == .equal else { return outcome }
    }
    return .equal
  }

  /// Compares numbers of any length. Without leading zeros, the longer number is greater.
  private static func compareDigits(_ left: ArraySlice<UInt8>, _ right: ArraySlice<UInt8>) -> Outcome {
    let zero = UInt8(ascii: "0")
    let (left, right) = (left.drop { $0 == zero }, right.drop { $0 == zero })
    guard left.count == right.count else { return left.count < right.count ? .less : .greater }
    return compareBytes(left, right)
  }

  /// Compares byte by byte. If one text is a prefix of the other, the longer one is greater.
  private static func compareBytes(_ left: ArraySlice<UInt8>, _ right: ArraySlice<UInt8>) -> Outcome {
    if left.elementsEqual(right) { return .equal }
    return left.lexicographicallyPrecedes(right) ? .less : .greater
  }
}

// MARK: - Linux

extension VersionOrder {
  /// Compares segment by segment. Bytes that cannot be part of a version only separate segments.
  private static func compareSegments(_ left: [UInt8], _ right: [UInt8]) -> Outcome {
    var (left, right) = (left[...], right[...])
    while true {
      left = left.drop { !$0.isVersionByte }
      right = right.drop { !$0.isVersionByte }
      // A pre-release, such as 1.2~rc1, is less than the version itself, whose text ends here.
      if let outcome = skip("~", &left, &right) { return outcome }
      if left.isEmpty || right.isEmpty {
        guard left.isEmpty != right.isEmpty else { return .equal }
        return left.isEmpty ? .less : .greater
      }
      // In ascending order: a new release of a package ("-"), a later patch ("^"), a further field of the
      // version (".").
      for mark in ["-", "^", "."] as [Unicode.Scalar] {
        if let outcome = skip(mark, &left, &right) { return outcome }
      }
      let isNumber = left.first?.isDigit == true || right.first?.isDigit == true
      let leftSegment = left.prefix { isNumber ? $0.isDigit : $0.isLetter }
      let rightSegment = right.prefix { isNumber ? $0.isDigit : $0.isLetter }
      // A number is greater than letters or an empty segment.
      if isNumber, leftSegment.isEmpty != rightSegment.isEmpty { return leftSegment.isEmpty ? .less : .greater }
      let outcome =
        isNumber ? compareDigits(leftSegment, rightSegment) : compareBytes(leftSegment, rightSegment)
      guard outcome == .equal else { return outcome }
      left = left[leftSegment.endIndex...]
      right = right[rightSegment.endIndex...]
    }
  }

  /// Removes a mark from both texts. If only one text begins with the mark, that text is less.
  private static func skip(
    _ mark: Unicode.Scalar, _ left: inout ArraySlice<UInt8>, _ right: inout ArraySlice<UInt8>
  ) -> Outcome? {
    let byte = UInt8(ascii: mark)
    guard (left.first == byte) == (right.first == byte) else { return left.first == byte ? .less : .greater }
    if left.first == byte {
      left.removeFirst()
      right.removeFirst()
    }
    return nil
  }
}

extension UInt8 {
  fileprivate var isDigit: Bool { self >= UInt8(ascii: "0") && self <= UInt8(ascii: "9") }

  fileprivate var isLetter: Bool {
    let lower = self | 0x20
    return lower >= UInt8(ascii: "a") && lower <= UInt8(ascii: "z")
  }

  fileprivate var isVersionByte: Bool {
    isDigit || isLetter || [UInt8(ascii: "~"), UInt8(ascii: "-"), UInt8(ascii: "^"), UInt8(ascii: ".")].contains(self)
  }
}
