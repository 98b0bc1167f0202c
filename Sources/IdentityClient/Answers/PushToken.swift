/// The token that a push service knows an app on this device by.
public struct PushToken: Hashable, Sendable {
  /// The token.
  public let token: String
  /// The push service.
  public let provider: String
  /// The app.
  public let app: String
  /// The device that it was given out for.
  public let device: IdentityUUID
  /// Which of the provider's environments it belongs to, where that was said.
  public let environment: String?
  /// What it is for, where that was said.
  public let topic: String?
  /// Whether the provider takes it, as far as anybody has said.
  public let isValid: Bool
  /// When there first was a token of this provider.
  public let created: IdentityTime
  /// When this one came.
  public let changed: IdentityTime
  /// When the app last said that it is the one.
  public let confirmed: IdentityTime

  init(_ fields: AnswerFields) throws(IdentityError) {
    token = try fields.word(0)
    provider = try fields.required("provider")
    app = try fields.required("app")
    device = try fields.requiredUUID("device")
    environment = fields.text("environment")
    topic = fields.text("topic")
    isValid = try fields.required("state") == "valid"
    created = try fields.requiredTime("created")
    changed = try fields.requiredTime("changed")
    confirmed = try fields.requiredTime("confirmed")
  }
}

/// What became of a token that was put.
public struct PushTokenOutcome: Hashable, Sendable {
  /// What is new.
  public enum State: String, CaseIterable, Sendable {
    /// There was none of that provider.
    case created
    /// There was another one.
    case replaced
    /// It was the one already, and is confirmed.
    case unchanged
  }

  /// What is new.
  public let state: State
  /// The device that it is registered for.
  public let device: IdentityUUID
  /// The token that was there before; nil where it is the same, or there was none.
  public let previous: String?

  init(_ fields: AnswerFields) throws(IdentityError) {
    state = try fields.choice(Dictionary(uniqueKeysWithValues: State.allCases.map { ($0.rawValue, $0) }))
    device = try fields.requiredUUID("device")
    previous = fields.text("previous")
  }
}
