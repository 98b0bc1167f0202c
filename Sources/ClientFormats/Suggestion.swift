/// The known word that a mistyped word probably means.
package enum Suggestion {
  /// Longer words are not compared: no verb, attribute or level is so long, and the word may be a secret.
  private static let longest = 40

  /// Returns the word among `known` that is nearest to a mistyped one, if it is near and no other is as near.
  ///
  /// Case is ignored. A word is near if a third of its characters differ at most.
  package static func nearest(to word: String, among known: [String]) -> String? {
    guard word.utf8.count <= longest, !known.contains(word.lowercased()) else { return nil }
    let typed = Array(word.lowercased().unicodeScalars)
    let near = Set(known).map { (word: $0, distance: distance(typed, Array($0.lowercased().unicodeScalars))) }
      .filter { $0.distance <= max(1, typed.count / 3) }
    guard let least = near.map(\.distance).min() else { return nil }
    let nearest = near.filter { $0.distance == least }.map(\.word)
    // `stauts` is as near to `stats` as to `status`, but letters are swapped more often than added.
    let sameLength = nearest.filter { $0.unicodeScalars.count == typed.count }
    let chosen = sameLength.isEmpty ? nearest : sameLength
    return chosen.count == 1 ? chosen[0] : nil
  }

  /// Returns the number of characters to insert, delete or replace and of neighbours to swap (Damerau–Levenshtein
  /// distance, in the variant that edits no part twice).
  private static func distance(_ first: [Unicode.Scalar], _ second: [Unicode.Scalar]) -> Int {
    var beforeLast: [Int] = []
    var last = Array(0...second.count)
    for (row, character) in first.enumerated() {
      var next = [row + 1]
      for (column, other) in second.enumerated() {
        var least = min(last[column + 1] + 1, next[column] + 1, last[column] + (character == other ? 0 : 1))
        if row > 0, column > 0, character == second[column - 1], first[row - 1] == other {
          least = min(least, beforeLast[column - 1] + 1)
        }
        next.append(least)
      }
      (beforeLast, last) = (last, next)
    }
    return last[second.count]
  }
}
