/// A rule for comparing versions (identityd-protocol(7), section "How versions are ordered").
package enum VersionOrder: String, CaseIterable, Sendable {
  /// Compares the fields between dots by the numbers that they begin with.
  case numeric
  /// Compares by SemVer 2.0.0, section 11.
  case semver
  /// Compares like `dpkg --compare-versions` (deb-version(7)).
  case debian
  /// Compares like `systemd-analyze compare-versions`
  /// (uapi-group.org/specifications/specs/version_format_specification).
  case linux
  /// Chooses the order by the form of both versions.
  case auto

  /// The relation of a first version to a second one.
  package enum Outcome: String, Sendable {
    case less
    case equal
    case greater
  }

  /// Returns the relation of the first version to the second.
  package func compare(_ left: Text, _ right: Text) -> Outcome {
    compare(left.bytes[...], right.bytes[...])
  }

  /// Returns the relation of a first version that an app reports to a second one.
  ///
  /// Apps write `v1.9` or `player-1.9`, whose numbers the orders `numeric` and `semver` would not find.
  func compareReported(_ left: Text, _ right: Text) -> Outcome {
    let (left, right) = Self.withoutSharedName(left.bytes[...], right.bytes[...])
    return compare(left, right)
  }

  private func compare(_ left: ArraySlice<UInt8>, _ right: ArraySlice<UInt8>) -> Outcome {
    switch self {
    case .numeric: Self.compareNumbers(left, right)
    case .semver: Self.compareSemantic(left, right)
    case .debian: Self.compareDebian(left, right)
    case .linux: Self.compareSegments(left, right)
    case .auto: Self.compareByForm(left, right)
    }
  }

  /// Returns both versions without a text that both begin with, such as `v` or a name and a hyphen, if a digit follows in
  /// both.
  static func withoutSharedName(_ left: ArraySlice<UInt8>, _ right: ArraySlice<UInt8>)
    -> (ArraySlice<UInt8>, ArraySlice<UInt8>)
  {
    let name = left.prefix { !$0.isDigit }
    let rests = (left.dropFirst(name.count), right.dropFirst(name.count))
    let hasName = right.starts(with: name) && rests.0.first?.isDigit == true && rests.1.first?.isDigit == true
    return hasName ? rests : (left, right)
  }
}

// MARK: - Numeric

extension VersionOrder {
  /// Compares field by field. Empty fields are skipped, and missing fields count as 0.
  static func compareNumbers(_ left: ArraySlice<UInt8>, _ right: ArraySlice<UInt8>) -> Outcome {
    let dot = UInt8(ascii: ".")
    let (lefts, rights) = (left.split(separator: dot), right.split(separator: dot))
    for index in 0..<max(lefts.count, rights.count) {
      let outcome = compareDigits(
        index < lefts.count ? lefts[index].prefix(while: \.isDigit) : [],
        index < rights.count ? rights[index].prefix(while: \.isDigit) : [])
      guard outcome == .equal else { return outcome }
    }
    return .equal
  }

  /// Compares numbers of any length. Without leading zeros, the longer number is greater.
  static func compareDigits(_ left: ArraySlice<UInt8>, _ right: ArraySlice<UInt8>) -> Outcome {
    let zero = UInt8(ascii: "0")
    let (left, right) = (left.drop { $0 == zero }, right.drop { $0 == zero })
    guard left.count == right.count else { return left.count < right.count ? .less : .greater }
    return compareBytes(left, right)
  }

  /// Compares byte by byte. If one text is a prefix of the other, the longer one is greater.
  static func compareBytes(_ left: ArraySlice<UInt8>, _ right: ArraySlice<UInt8>) -> Outcome {
    if left.elementsEqual(right) { return .equal }
    return left.lexicographicallyPrecedes(right) ? .less : .greater
  }
}

// MARK: - Linux

extension VersionOrder {
  /// Compares segment by segment. Bytes that cannot be part of a version only separate segments.
  static func compareSegments(_ left: ArraySlice<UInt8>, _ right: ArraySlice<UInt8>) -> Outcome {
    var (left, right) = (left, right)
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
  var isDigit: Bool { self >= UInt8(ascii: "0") && self <= UInt8(ascii: "9") }

  var isLetter: Bool {
    let lower = self | 0x20
    return lower >= UInt8(ascii: "a") && lower <= UInt8(ascii: "z")
  }

  fileprivate var isVersionByte: Bool {
    isDigit || isLetter || [UInt8(ascii: "~"), UInt8(ascii: "-"), UInt8(ascii: "^"), UInt8(ascii: ".")].contains(self)
  }
}
