/// The push tokens of all apps.
package struct TokenTable: Equatable, Sendable {
  private var apps = DividedDictionary<Text, [Text: Token]>()
  /// How many there are.
  package private(set) var count = 0
  /// The number of the token that was first put last.
  package private(set) var lastNumber: Int64 = 0

  /// An app's token of a provider.
  package subscript(app: Text, provider: Text) -> Token? { apps[app]?[provider] }

  /// An app's tokens, in the order they were first put.
  package func tokens(of app: Text) -> [Token] { (apps[app] ?? [:]).values.sorted { $0.number < $1.number } }

  /// How many tokens an app has.
  func count(of app: Text) -> Int { apps[app]?.count ?? 0 }

  /// Every token, in the order they were first put.
  package var all: [Token] { apps.values.flatMap(\.values).sorted { $0.number < $1.number } }

  /// Takes a token in, in the place of one of the same app and provider.
  mutating func store(_ token: Token) {
    let isNew = apps.update(token.app) { tokens in
      if tokens == nil { tokens = [:] }
      return tokens?.updateValue(token, forKey: token.provider) == nil
    }
    if isNew { count += 1 }
    lastNumber = max(lastNumber, token.number)
  }

  /// Lets go of an app's token.
  mutating func remove(_ token: Token) {
    let isGone = apps.update(token.app) { tokens in
      defer { if tokens?.isEmpty == true { tokens = nil } }
      return tokens?.removeValue(forKey: token.provider) != nil
    }
    if isGone { count -= 1 }
  }
}
