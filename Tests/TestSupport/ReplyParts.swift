package import IdentityCore

extension Reply: Equatable {
  /// Returns all parts in order, those of the rows first.
  ///
  /// - Throws: the refusal in place of an answer without rows.
  package func allParts() throws(Refusal) -> [Part] {
    var (copy, row, effort) = (self, Reply(), Int.max)
    var parts: [Part] = []
    while case .found = try copy.nextRow(in: &row, effort: &effort) { parts += row.parts }
    return parts + copy.parts
  }

  /// Returns whether both answers are the same, however their rows are made.
  package static func == (left: Reply, right: Reply) -> Bool {
    func result(_ reply: Reply) -> Result<[Part], Refusal> { .init { () throws(Refusal) in try reply.allParts() } }
    return left.secrets == right.secrets && result(left) == result(right)
  }
}
