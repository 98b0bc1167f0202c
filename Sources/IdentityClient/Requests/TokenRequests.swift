extension IdentityRequest where Answer == PushTokenOutcome {
  /// Stores the app's current push token of a provider, and replaces the previous one.
  ///
  /// Fails with ``IdentityError/Code/limit`` if the app has tokens of too many providers.
  ///
  /// - Parameters:
  ///   - token: The token, 1 to 4,096 bytes.
  ///   - provider: The push service, at most 255 bytes.
  ///   - environment: The environment of the provider, at most 255 bytes; nil for none.
  ///   - topic: The topic of the token, at most 255 bytes; nil for none.
  ///   - isRenewed: Whether the provider has just issued the token to this installation. Then the token is valid although
  ///     it was left to another machine; see ``PushToken/isCopied``.
  ///   - app: The ID of the app; nil for the calling app. Any other app is for admins.
  public static func putToken(
    _ token: String, provider: String, environment: String? = nil, topic: String? = nil, isRenewed: Bool = false,
    app: String? = nil
  ) -> IdentityRequest {
    let line = RequestLine.change("token put").operand(provider).operand(token)
      .attribute("environment", environment).attribute("topic", topic).flag("renewed", isRenewed)
      .attribute("app", app)
    return IdentityRequest(line) { (fields) throws(IdentityError) in try PushTokenOutcome(fields) }
  }
}

extension IdentityRequest where Answer == PushToken {
  /// Requests the app's push token of a provider.
  ///
  /// Fails with ``IdentityError/Code/notFound`` if the app has no token of this provider.
  public static func token(provider: String, app: String? = nil) -> IdentityRequest {
    let line = RequestLine.question("token get").operand(provider).attribute("app", app)
    return IdentityRequest(line) { (fields) throws(IdentityError) in try PushToken(fields) }
  }
}

extension IdentityRequest where Answer == [PushToken] {
  /// Requests the app's push tokens, in the order in which the providers were first used.
  ///
  /// - Parameters:
  ///   - seconds: Returns only tokens that were not put for at least that many seconds; nil for all.
  ///   - app: The ID of the app; nil for the calling app. `*`, for admins, means all apps.
  public static func tokens(notConfirmedForSeconds seconds: Int? = nil, app: String? = nil) -> IdentityRequest {
    let line = RequestLine.question("token list").attribute("stale", seconds.map { "\($0)" }).attribute("app", app)
    return IdentityRequest(line) { (fields) throws(IdentityError) in
      try fields.map { (row) throws(IdentityError) in try PushToken(row) }
    }
  }
}

extension IdentityRequest where Answer == Bool {
  /// Marks a token as invalid, because its provider refused it.
  ///
  /// The answer is true if the token is still the app's token of this provider, and false if the app has another
  /// token or none.
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
  ///
  /// Fails with ``IdentityError/Code/notFound`` if the app has no token of this provider.
  public static func deleteToken(provider: String, app: String? = nil) -> IdentityRequest {
    let line = RequestLine.change("token delete").operand(provider).attribute("app", app)
    return IdentityRequest(line) { (_) throws(IdentityError) in }
  }
}
