extension IdentityRequest where Answer == PushTokenOutcome {
  /// Says which push token of a provider is the app's now: the one before is replaced.
  ///
  /// - Parameters:
  ///   - token: at most 4,096 bytes.
  ///   - provider: the push service.
  ///   - environment: which of the provider's environments it belongs to.
  ///   - topic: what it is for.
  ///   - app: whose; nil for the asking app's own.
  public static func putToken(
    _ token: String, provider: String, environment: String? = nil, topic: String? = nil, app: String? = nil
  ) -> IdentityRequest {
    let line = RequestLine.change("token put").operand(provider).operand(token)
      .attribute("environment", environment).attribute("topic", topic).attribute("app", app)
    return IdentityRequest(line) { (fields) throws(IdentityError) in try PushTokenOutcome(fields) }
  }
}

extension IdentityRequest where Answer == PushToken {
  /// The app's push token of a provider.
  public static func token(provider: String, app: String? = nil) -> IdentityRequest {
    let line = RequestLine.question("token get").operand(provider).attribute("app", app)
    return IdentityRequest(line) { (fields) throws(IdentityError) in try PushToken(fields) }
  }
}

extension IdentityRequest where Answer == [PushToken] {
  /// The app's push tokens.
  ///
  /// - Parameters:
  ///   - seconds: only those that were not confirmed for that long.
  ///   - app: whose; `*`, for admins, is everybody's.
  public static func tokens(notConfirmedForSeconds seconds: Int? = nil, app: String? = nil) -> IdentityRequest {
    let line = RequestLine.question("token list").attribute("stale", seconds.map { "\($0)" }).attribute("app", app)
    return IdentityRequest(line) { (fields) throws(IdentityError) in
      try fields.map { (row) throws(IdentityError) in try PushToken(row) }
    }
  }
}

extension IdentityRequest where Answer == Bool {
  /// Marks a token that its provider refuses: true where it was still the app's, false where another one is.
  public static func invalidateToken(_ token: String, provider: String, app: String? = nil) -> IdentityRequest {
    let line = RequestLine.change("token invalidate").operand(provider).operand(token).attribute("app", app)
    return IdentityRequest(line) { (fields) throws(IdentityError) in
      guard !fields.isEmpty else { return true }
      return try fields.word(0) != "unchanged"
    }
  }
}

extension IdentityRequest where Answer == Void {
  /// Deletes the app's push token of a provider.
  public static func deleteToken(provider: String, app: String? = nil) -> IdentityRequest {
    let line = RequestLine.change("token delete").operand(provider).attribute("app", app)
    return IdentityRequest(line) { (_) throws(IdentityError) in }
  }
}
