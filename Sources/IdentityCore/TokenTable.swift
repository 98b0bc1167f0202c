/// The tokens of an app in the order in which they were first put: few enough for a linear search.
struct AppTokens: OrderedElement, Equatable {
  /// The ID of the app.
  let key: Text
  var tokens: [Token]
}

/// The push tokens of all apps, in the order of the apps' IDs.
package struct TokenTable: Equatable, Sendable {
  private var apps = OrderedTable<AppTokens>()
  /// The number of tokens.
  package private(set) var count = 0
  /// The highest number of any token.
  package private(set) var lastNumber: Int64 = 0

  /// An app's token of a provider.
  package subscript(app: Text, provider: Text) -> Token? {
    guard let tokens = apps[app]?.tokens else { return nil }
    return tokens.firstIndex(of: provider).map { tokens[$0] }
  }

  /// Returns an app's tokens in the order in which they were first put.
  package func tokens(of app: Text) -> [Token] { apps[app]?.tokens ?? [] }

  func count(of app: Text) -> Int { apps[app]?.tokens.count ?? 0 }

  /// All tokens, in the order of the apps' IDs.
  package var all: some Sequence<Token> { apps.lazy.flatMap(\.tokens) }

  /// All tokens in blocks, in the order of the apps' IDs.
  var blocks: TokenBlocks { TokenBlocks(apps: OrderedBlocks(apps)) }

  /// Returns an app's tokens in one block.
  func blocks(of app: Text) -> TokenBlocks { TokenBlocks(apps: OrderedBlocks(apps, from: app, through: app)) }

  /// Returns the tokens of as many apps as have a number of tokens together, in the order of the apps' IDs.
  ///
  /// - Parameters:
  ///   - app: the app behind which the page begins; nil for the first page.
  ///   - limit: the number of tokens from which on no further app is added.
  func page(after app: Text?, limit: Int) -> TokenBlocks {
    TokenBlocks(apps: OrderedBlocks(apps, from: app, isBehind: app != nil), limit: limit)
  }

  /// Adds a token, or replaces the app's token of the same provider.
  mutating func store(_ token: Token) {
    // Not taken out of the table, which would take another change of it. An app has few tokens to copy.
    var app = apps[token.app] ?? AppTokens(key: token.app, tokens: [])
    let index = app.tokens.firstIndex(of: token.provider)
    if let index, app.tokens[index].number == token.number {
      app.tokens[index] = token
    } else {
      if let index { app.tokens.remove(at: index) }
      let end = app.tokens.firstIndex { $0.number > token.number } ?? app.tokens.count
      app.tokens.insert(token, at: end)
    }
    apps.store(app)
    if index == nil { count += 1 }
    lastNumber = max(lastNumber, token.number)
  }

  /// Removes the token of the same app and provider.
  mutating func remove(_ token: Token) {
    guard var app = apps[token.app], let index = app.tokens.firstIndex(of: token.provider) else { return }
    apps.remove(token.app)
    app.tokens.remove(at: index)
    if !app.tokens.isEmpty { apps.store(app) }
    count -= 1
  }
}

/// The tokens of apps, app by app.
struct TokenBlocks: BlockSource {
  private var apps: OrderedBlocks<AppTokens>
  private var block: ArraySlice<AppTokens> = []
  /// The number of tokens from which on no further app follows.
  private var left: Int

  init(apps: OrderedBlocks<AppTokens>, limit: Int = .max) {
    self.apps = apps
    left = limit
  }

  mutating func next() -> ArraySlice<Token> {
    guard left > 0 else { return [] }
    if block.isEmpty { block = apps.next() }
    let tokens = block.popFirst()?.tokens ?? []
    left -= tokens.count
    return tokens[...]
  }
}

extension [Token] {
  fileprivate func firstIndex(of provider: Text) -> Int? { indices.first { self[$0].provider == provider } }
}
