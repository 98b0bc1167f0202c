// The orders of versions that belong to a form: semantic versions, those of Debian, and the choice between them.

// MARK: - Semantic

/// The parts of a semantic version (SemVer 2.0.0, section 2). A text of another form has parts, too.
private struct SemanticVersion {
  /// Major, minor and patch version, between dots.
  let numbers: ArraySlice<UInt8>
  /// The identifiers of the pre-release, between dots; nil for a release.
  let preRelease: ArraySlice<UInt8>?

  init(_ text: ArraySlice<UInt8>) {
    // The build behind the plus sign has no rank (section 10).
    let ranked = text.prefix { $0 != UInt8(ascii: "+") }
    numbers = ranked.prefix { $0 != UInt8(ascii: "-") }
    preRelease = numbers.endIndex < ranked.endIndex ? ranked[(numbers.endIndex + 1)...] : nil
  }

  /// Whether the version has three numbers, and letters at the beginning of its pre-release, if it has one. Other
  /// versions with a hyphen have a revision there, such as 1.2.3-4.
  var isPlain: Bool {
    let fields = numbers.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    return fields.count == 3 && fields.allSatisfy { !$0.isEmpty && $0.allSatisfy(\.isDigit) }
      && preRelease?.first?.isLetter != false
  }
}

extension VersionOrder {
  static func compareSemantic(_ left: ArraySlice<UInt8>, _ right: ArraySlice<UInt8>) -> Outcome {
    let (left, right) = (SemanticVersion(left), SemanticVersion(right))
    let outcome = compareNumbers(left.numbers, right.numbers)
    guard outcome == .equal else { return outcome }
    switch (left.preRelease, right.preRelease) {
    case (nil, nil): return .equal
    case (nil, _?): return .greater
    case (_?, nil): return .less
    case (let left?, let right?): return comparePreReleases(left, right)
    }
  }

  /// Compares identifier by identifier (section 11.4).
  private static func comparePreReleases(_ left: ArraySlice<UInt8>, _ right: ArraySlice<UInt8>) -> Outcome {
    let dot = UInt8(ascii: ".")
    let lefts = left.split(separator: dot, omittingEmptySubsequences: false)
    let rights = right.split(separator: dot, omittingEmptySubsequences: false)
    for (left, right) in zip(lefts, rights) {
      let isNumber = (!left.isEmpty && left.allSatisfy(\.isDigit), !right.isEmpty && right.allSatisfy(\.isDigit))
      let outcome: Outcome =
        switch isNumber {
        case (true, true): compareDigits(left, right)
        case (true, false): .less
        case (false, true): .greater
        case (false, false): compareBytes(left, right)
        }
      guard outcome == .equal else { return outcome }
    }
    if lefts.count == rights.count { return .equal }
    return lefts.count < rights.count ? .less : .greater
  }
}

// MARK: - Debian

/// The parts of a version of Debian (deb-version(7)).
private struct DebianVersion {
  /// The digits before the first colon; empty without one.
  let epoch: ArraySlice<UInt8>
  /// The version of the program.
  let upstream: ArraySlice<UInt8>
  /// The version of the package, behind the last hyphen; empty without one.
  let revision: ArraySlice<UInt8>

  init(_ text: ArraySlice<UInt8>) {
    let digits = text.prefix(while: \.isDigit)
    let hasEpoch = !digits.isEmpty && text[digits.endIndex...].first == UInt8(ascii: ":")
    epoch = hasEpoch ? digits : []
    let rest = hasEpoch ? text[(digits.endIndex + 1)...] : text
    let hyphen = rest.lastIndex(of: UInt8(ascii: "-"))
    upstream = hyphen.map { rest[..<$0] } ?? rest
    revision = hyphen.map { rest[($0 + 1)...] } ?? []
  }
}

extension VersionOrder {
  static func compareDebian(_ left: ArraySlice<UInt8>, _ right: ArraySlice<UInt8>) -> Outcome {
    let (left, right) = (DebianVersion(left), DebianVersion(right))
    var outcome = compareDigits(left.epoch, right.epoch)
    if outcome == .equal { outcome = compareDebianParts(left.upstream, right.upstream) }
    return outcome == .equal ? compareDebianParts(left.revision, right.revision) : outcome
  }

  /// Compares a part without digits, then one of digits, and so on.
  private static func compareDebianParts(_ left: ArraySlice<UInt8>, _ right: ArraySlice<UInt8>) -> Outcome {
    var (left, right) = (left, right)
    while !left.isEmpty || !right.isEmpty {
      while left.first?.isDigit == false || right.first?.isDigit == false {
        let ranks = (debianRank(left.first), debianRank(right.first))
        guard ranks.0 == ranks.1 else { return ranks.0 < ranks.1 ? .less : .greater }
        left = left.dropFirst()
        right = right.dropFirst()
      }
      let digits = (left.prefix(while: \.isDigit), right.prefix(while: \.isDigit))
      let outcome = compareDigits(digits.0, digits.1)
      guard outcome == .equal else { return outcome }
      left = left[digits.0.endIndex...]
      right = right[digits.1.endIndex...]
    }
    return .equal
  }

  /// The rank of a byte that is no digit: a tilde comes before the end, then letters, then all other bytes.
  private static func debianRank(_ byte: UInt8?) -> Int {
    guard let byte, !byte.isDigit else { return 0 }
    if byte == UInt8(ascii: "~") { return -1 }
    return byte.isLetter ? Int(byte) : Int(byte) + 256
  }
}

// MARK: - Automatic

extension VersionOrder {
  /// The words that mark a version before a release if a number follows, with the marks of their ranks (packaging.python.org,
  /// "Version specifiers", section "Pre-releases").
  private static let preReleases = [
    ("a", "~a"), ("alpha", "~a"), ("b", "~b"), ("beta", "~b"), ("rc", "~rc"), ("pre", "~rc"), ("dev", "~~dev"),
  ].map { (word: Array($0.0.utf8), mark: Array($0.1.utf8)) }

  /// Compares by the order that suits the form of both versions.
  static func compareByForm(_ left: ArraySlice<UInt8>, _ right: ArraySlice<UInt8>) -> Outcome {
    let (left, right) = withoutSharedName(left, right)
    let (leftParts, rightParts) = (SemanticVersion(left), SemanticVersion(right))
    if leftParts.isPlain, rightParts.isPlain, leftParts.preRelease != nil || rightParts.preRelease != nil {
      return compareSemantic(left, right)
    }
    if isDebian(left) || isDebian(right) { return compareDebian(left, right) }
    let (leftMarked, rightMarked) = (
      markingPreReleases(withoutFinalZeros(left)), markingPreReleases(withoutFinalZeros(right))
    )
    return compareSegments(leftMarked[...], rightMarked[...])
  }

  /// Returns a version without the last of its first numbers that are 0, so that 1.0 equals 1.0.0.
  private static func withoutFinalZeros(_ version: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    let dot = UInt8(ascii: ".")
    var numbers = version.prefix { $0.isDigit || $0 == dot }
    // A dot before a word is none between numbers.
    if numbers.last == dot { numbers = numbers.dropLast() }
    var kept = numbers
    while let last = kept.lastIndex(of: dot), last > kept.startIndex, last + 1 < kept.endIndex,
      kept[(last + 1)...].allSatisfy({ $0 == UInt8(ascii: "0") })
    {
      kept = kept[..<last]
    }
    return kept + version[numbers.endIndex...]
  }

  /// Returns whether a version has an epoch or a plus sign.
  private static func isDebian(_ version: ArraySlice<UInt8>) -> Bool {
    !DebianVersion(version).epoch.isEmpty || version.contains(UInt8(ascii: "+"))
  }

  /// Returns a version with the mark of each word for a pre-release between two numbers, in place of the word and of a dot,
  /// hyphen or underscore beside it: 3.11.0rc2 and 3.11.0-rc.2 become 3.11.0~rc2.
  private static func markingPreReleases(_ version: ArraySlice<UInt8>) -> [UInt8] {
    var marked: [UInt8] = []
    var rest = version
    while let byte = rest.first {
      // Looked for behind a number only, so that a long text is read once.
      let isBehindNumber = marked.last?.isDigit == true
      let isSeparator = byte == UInt8(ascii: ".") || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
      let word = isBehindNumber ? (isSeparator ? rest.dropFirst() : rest).prefix(while: \.isLetter) : rest.prefix(0)
      guard !word.isEmpty else {
        marked.append(byte)
        rest = rest.dropFirst()
        continue
      }
      rest = rest[word.endIndex...]
      if let mark = mark(of: word, before: rest) {
        marked += mark
        if rest.first?.isDigit == false { rest = rest.dropFirst() }
      } else {
        if isSeparator { marked.append(byte) }
        marked += word
      }
    }
    return marked
  }

  private static func mark(of word: ArraySlice<UInt8>, before rest: ArraySlice<UInt8>) -> [UInt8]? {
    // A dot or a hyphen may be between the word and its number.
    let number = rest.first?.isDigit == true ? rest : rest.dropFirst()
    guard number.first?.isDigit == true else { return nil }
    return preReleases.first { $0.word.elementsEqual(word.lazy.map { $0 | 0x20 }) }?.mark
  }
}
