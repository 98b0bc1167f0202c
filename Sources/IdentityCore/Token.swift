/// A push token (identityd-protocol(7), section "PUSH TOKENS"). An app has one token per provider on this device.
///
/// The object is immutable. The daemon passes a token on a dozen times and then keeps it in both registries, and each
/// copy of a reference retains one object instead of every text.
package final class Token: Equatable, Sendable {
  /// The row number in the store. Token numbers ascend in the order in which tokens were first put.
  package let number: Int64
  /// The app that has the token.
  package let app: Text
  /// The provider that issued the token.
  package let provider: Text
  /// The token value, which is opaque.
  package let value: Text
  /// The provider's environment that the token is for.
  package let environment: Text?
  /// The provider's topic that the token is for.
  package let topic: Text?
  /// The device identifier that the app sees.
  package let device: UUID
  /// Whether the token is valid: no sender has reported that the provider refuses it.
  package let isValid: Bool
  /// The time the app first had a token of this provider.
  package let created: Timestamp
  /// The time the token last changed.
  package let changed: Timestamp
  /// The time the app last put this token.
  package let confirmed: Timestamp
  /// Identifies the token in events, which must not contain the token value.
  package let fingerprint: Text

  package init(
    number: Int64, app: Text, provider: Text, value: Text, environment: Text?, topic: Text?, device: UUID,
    isValid: Bool, created: Timestamp, changed: Timestamp, confirmed: Timestamp, fingerprint: Text
  ) {
    self.number = number
    self.app = app
    self.provider = provider
    self.value = value
    self.environment = environment
    self.topic = topic
    self.device = device
    self.isValid = isValid
    self.created = created
    self.changed = changed
    self.confirmed = confirmed
    self.fingerprint = fingerprint
  }

  /// Returns a copy of the token with some properties changed.
  package func with(
    device: UUID? = nil, isValid: Bool? = nil, changed: Timestamp? = nil, confirmed: Timestamp? = nil
  ) -> Token {
    Token(
      number: number, app: app, provider: provider, value: value, environment: environment, topic: topic,
      device: device ?? self.device, isValid: isValid ?? self.isValid, created: created,
      changed: changed ?? self.changed, confirmed: confirmed ?? self.confirmed, fingerprint: fingerprint)
  }

  package static func == (left: Token, right: Token) -> Bool {
    left === right
      || left.number == right.number && left.app == right.app && left.provider == right.provider
        && left.value == right.value && left.environment == right.environment && left.topic == right.topic
        && left.device == right.device && left.isValid == right.isValid && left.created == right.created
        && left.changed == right.changed && left.confirmed == right.confirmed
        && left.fingerprint == right.fingerprint
  }
}

/// The kind of change of a token that exists afterwards.
package enum TokenChange: Equatable, Sendable {
  case created
  case replaced
  /// The app put the same token again. No event is sent.
  case confirmed
  case invalidated
  /// The device identifier changed.
  case rehomed(from: UUID)
}

// MARK: - Requests

/// The token that an app registers.
package struct TokenRegistration: Equatable, Sendable {
  /// The provider that issued the token.
  package let provider: Text
  /// The token value.
  package let value: Text
  /// The environment, if the provider has environments.
  package let environment: Text?
  /// The topic, if the provider has topics.
  package let topic: Text?

  package init(provider: Text, value: Text, environment: Text? = nil, topic: Text? = nil) {
    self.provider = provider
    self.value = value
    self.environment = environment
    self.topic = topic
  }
}

/// The apps whose tokens are listed.
package enum TokenOwners: Equatable, Sendable {
  /// The named app, or the peer's own if none is named.
  case app(named: Text?)
  /// All apps (`app=*`).
  case all
  /// The apps after an ID, in the order of their IDs, until they have a number of tokens together.
  case page(after: Text?, limit: Int)
}
