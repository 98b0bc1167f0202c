/// A push token (protocol, section 6): an app has one of each provider's on this device.
///
/// It never changes. On its way through the daemon it is handed on a dozen times and then held by both registries, so it
/// is one reference, and not one to each of its texts.
package final class Token: Equatable, Sendable {
  /// Its place in the store, and in the order in which tokens were first put.
  package let number: Int64
  /// Whose it is.
  package let app: Text
  /// Who gave it.
  package let provider: Text
  /// The token itself: opaque.
  package let value: Text
  /// The provider's environment that it is for.
  package let environment: Text?
  /// The provider's topic that it is for.
  package let topic: Text?
  /// The device identifier as the app sees it.
  package let device: UUID
  /// Whether no sender said that the provider refuses it.
  package let isValid: Bool
  /// When the app first had a token of this provider's.
  package let created: Timestamp
  /// When it became what it is now.
  package let changed: Timestamp
  /// When the app last said that this is its token.
  package let confirmed: Timestamp
  /// Tells one token from another where the token itself has no place, as in an event.
  package let fingerprint: Text

  /// Puts a token together.
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

  /// The same token, of which something is another.
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

/// What happened to a token that is there afterwards.
package enum TokenChange: Equatable, Sendable {
  case created
  case replaced
  /// It is what it was, and its app said so: nobody is told.
  case confirmed
  case invalidated
  /// The device identifier is another one.
  case rehomed(from: UUID)
}

// MARK: - Requests

/// What an app says of a token.
package struct TokenRegistration: Equatable, Sendable {
  /// Who gave it.
  package let provider: Text
  /// The token itself.
  package let value: Text
  /// The environment, where the provider has such.
  package let environment: Text?
  /// The topic, where the provider has such.
  package let topic: Text?

  /// Puts a registration together.
  package init(provider: Text, value: Text, environment: Text? = nil, topic: Text? = nil) {
    self.provider = provider
    self.value = value
    self.environment = environment
    self.topic = topic
  }
}

/// Requests about push tokens (protocol, section 6). An app that is not named is the peer's own.
package enum TokenCommand: Equatable, Sendable {
  /// This is the app's token now.
  case put(TokenRegistration, app: Text?)
  /// The app's token of a provider.
  case get(provider: Text, app: Text?)
  /// Tokens; where a number of seconds is given, those that were not confirmed for that long.
  case list(TokenOwners, stale: Int64?)
  /// The provider refuses this token.
  case invalidate(provider: Text, value: Text, app: Text?)
  /// The app has no token of this provider's any more.
  case delete(provider: Text, app: Text?)
}

/// Whose tokens are listed.
package enum TokenOwners: Equatable, Sendable {
  /// The app that is named, else the peer's own.
  case app(named: Text?)
  /// All apps: `app=*`.
  case all
}
