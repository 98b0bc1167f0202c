/// The push token of an app on this device, for one provider.
public struct PushToken: Hashable, Sendable {
  /// The token.
  public let token: String
  /// The push service that issued the token.
  public let provider: String
  /// The ID of the app.
  public let app: String
  /// The device identifier as the app sees it.
  public let device: IdentityUUID
  /// The environment of the provider; nil if none was given.
  public let environment: String?
  /// The topic of the token; nil if none was given.
  public let topic: String?
  /// Whether the token is valid, which it is until ``IdentityRequest/invalidateToken(_:provider:app:)``, and again
  /// after it is put again.
  public let isValid: Bool
  /// Whether the token may be that of another machine, of which this one is a copy. Then it is not valid until the
  /// provider has issued another one, or the same one again.
  public let isCopied: Bool
  /// The time at which the app first had a token of this provider.
  public let created: IdentityTime
  /// The time at which the token last changed.
  public let changed: IdentityTime
  /// The time at which the token was last put.
  public let confirmed: IdentityTime

  init(_ fields: AnswerFields) throws(IdentityError) {
    token = try fields.word(0)
    provider = try fields.required("provider")
    app = try fields.required("app")
    device = try fields.requiredUUID("device")
    environment = fields.text("environment")
    topic = fields.text("topic")
    isValid = try fields.required("state") == "valid"
    isCopied = fields.text("reason") == "copied"
    created = try fields.requiredTime("created")
    changed = try fields.requiredTime("changed")
    confirmed = try fields.requiredTime("confirmed")
  }
}

/// The result of putting a token.
public struct PushTokenOutcome: Hashable, Sendable {
  /// The difference from the stored token.
  public enum State: String, CaseIterable, Sendable {
    /// The app had no token of this provider.
    case created
    /// The stored token, its environment or its topic differed, or the token was invalid.
    case replaced
    /// The same token was stored already. Only its time of confirmation changes.
    case unchanged
  }

  /// The difference from the token stored before.
  public let state: State
  /// The device identifier as the app sees it, which the daemon creates if there was none.
  public let device: IdentityUUID
  /// Whether the token is valid: false if it may be that of another machine, so that nothing was changed. Ask the provider
  /// for a token, and put it as renewed.
  public let isValid: Bool
  /// The previous token; nil if it is the same, or if there was none.
  public let previous: String?

  init(_ fields: AnswerFields) throws(IdentityError) {
    state = try fields.choice(Dictionary(uniqueKeysWithValues: State.allCases.map { ($0.rawValue, $0) }))
    device = try fields.requiredUUID("device")
    isValid = fields.text("state") != "invalid"
    previous = fields.text("previous")
  }
}
