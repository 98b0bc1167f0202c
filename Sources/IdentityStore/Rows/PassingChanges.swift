import IdentityCore

extension [RecordedChange] {
  /// Whether a later change of the same transaction replaces the row of a change, so that this row is not written: a flag
  /// for each change; empty if there are fewer than two changes.
  var passing: [Bool] {
    guard count > 1 else { return [] }
    var passing = [Bool](repeating: false, count: count)
    var tokens = RepeatedNumbers()
    var items = RepeatedNumbers()
    // In reverse order, so that the last change of a row is written. An added row is always written, and replaces none.
    for index in indices.reversed() {
      switch self[index].change {
      case .tokenStored(_, .created), .tokenStored(_, .copied), .itemStored(_, _, .added): break
      case .tokenStored(let token, _): passing[index] = tokens.isRepeated(token.number)
      case .itemStored(let item, _, _): passing[index] = items.isRepeated(item.number)
      default: break
      }
    }
    return passing
  }
}

/// A set of numbers seen before. The last number is compared first, because most often it repeats.
private struct RepeatedNumbers {
  private var numbers: Set<Int64> = []
  private var last: Int64?

  mutating func isRepeated(_ number: Int64) -> Bool {
    if number == last { return true }
    last = number
    return !numbers.insert(number).inserted
  }
}
