/// A push token (protocol, section 6): an app has one of each provider's on this device.
package struct Token: Equatable, Sendable {
  /// Its place in the store, and in the order in which tokens were first put.
  package let number: Int64
  /// Whose it is.
  package let app: Text
  /// Who gave it.
  package let provider: Text
  /// The token itself: opaque.
  package var value: Text
  /// The provider's environment that it is for.
  package var environment: Text?
  /// The provider's topic that it is for.
  package var topic: Text?
  /// The device identifier as the app sees it.
  package var device: UUID
  /// Whether no sender said that the provider refuses it.
  package var isValid: Bool
  /// When the app first had a token of this provider's.
  package let created: Timestamp
  /// When it became what it is now.
  package var changed: Timestamp
  /// When the app last said that this is its token.
  package var confirmed: Timestamp
  /// Tells one token from another where the token itself has no place, as in an event.
  package var fingerprint: Text

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
