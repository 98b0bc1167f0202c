/// The push tokens of all apps.
package struct TokenTable: Equatable, Sendable {
  /// The tokens of each app in the order in which they were first put: few enough for a linear search.
  private var apps = DividedDictionary<Text, [Token]>()
  /// The number of tokens.
  package private(set) var count = 0
  /// The highest number of any token.
  package private(set) var lastNumber: Int64 = 0

  /// An app's token of a provider.
  package subscript(app: Text, provider: Text) -> Token? {
    guard let tokens = apps[app] else { return nil }
    return tokens.place(of: provider).map { tokens[$0] }
  }

  /// Returns an app's tokens in the order in which they were first put.
  package func tokens(of app: Text) -> [Token] { apps[app] ?? [] }

  func count(of app: Text) -> Int { apps[app]?.count ?? 0 }

  /// All tokens in the order in which they were first put.
  package var all: [Token] { apps.values.flatMap(\.self).sorted { $0.number < $1.number } }

  /// Returns the tokens of as many apps as have a number of tokens together, in the order of the apps' IDs.
  ///
  /// - Parameters:
  ///   - app: the app behind which the page begins; nil for the first page.
  ///   - limit: the number of tokens from which on no further app is added.
  func page(after app: Text?, limit: Int) -> [Token] {
    var page: [Token] = []
    for other in apps.keys.filter({ other in app.map { $0 < other } ?? true }).sorted() where page.count < limit {
      page += tokens(of: other)
    }
    return page
  }

  /// Adds a token, or replaces the app's token of the same provider.
  mutating func store(_ token: Token) {
    let isNew = apps.update(token.app) { (tokens: inout [Token]?) in
      let place = tokens?.place(of: token.provider)
      if let place, tokens?[place].number == token.number {
        tokens?[place] = token
        return false
      }
      if let place { tokens?.remove(at: place) }
      tokens = ((tokens ?? []) + [token]).sorted { $0.number < $1.number }
      return place == nil
    }
    if isNew { count += 1 }
    lastNumber = max(lastNumber, token.number)
  }

  /// Removes the token of the same app and provider.
  mutating func remove(_ token: Token) {
    let isGone = apps.update(token.app) { (tokens: inout [Token]?) in
      guard let place = tokens?.place(of: token.provider) else { return false }
      tokens?.remove(at: place)
      if tokens?.isEmpty == true { tokens = nil }
      return true
    }
    if isGone { count -= 1 }
  }
}

extension [Token] {
  fileprivate func place(of provider: Text) -> Int? { indices.first { self[$0].provider == provider } }
}
