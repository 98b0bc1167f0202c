/// A push token (identityd-protocol(7), section "PUSH TOKENS") as it is stored. An app has one token per provider on this
/// device.
package struct TokenRecord: StoredRecord, Equatable {
  package static let table = RecordTable(
    "token", of: Self.self, digestIndex: 10, .tokens, indexes: ["token_key ON token (app, provider)"])

  /// The row number in the store. Token numbers ascend in the order in which tokens were first put.
  package var number: Int64
  /// The app that has the token.
  package var app: Text
  /// The provider that issued the token.
  package var provider: Text
  /// The token value, which is opaque. It is stored as the app gave it: a reader of the file can send with the token only
  /// if the provider allows it.
  package var value: Text
  /// The provider's environment that the token is for.
  package var environment: Text?
  /// The provider's topic that the token is for.
  package var topic: Text?
  /// The device identifier that the app sees.
  package var device: UUID
  /// Whether the token is valid: no sender has reported that the provider refuses it.
  package var isValid: Bool
  /// The time the app first had a token of this provider.
  package var created: Timestamp
  /// The time the token last changed.
  package var changed: Timestamp
  /// The time the app last put this token.
  package var confirmed: Timestamp

  package mutating func visit(_ fields: inout some FieldVisitor) {
    fields.field("n", &number)
    fields.field("app", &app, .lasting)
    fields.field("provider", &provider, .lasting)
    fields.field("token", &value)
    fields.field("environment", &environment)
    fields.field("topic", &topic)
    fields.field("device", &device)
    fields.field("valid", &isValid)
    fields.field("created", &created)
    fields.field("changed", &changed)
    fields.field("confirmed", &confirmed)
  }
}

// In an extension, so that the compiler makes the initializer that takes all fields.
extension TokenRecord {
  package init() {
    self.init(
      number: 0, app: .empty, provider: .empty, value: .empty, environment: nil, topic: nil, device: .zero,
      isValid: true, created: .epoch, changed: .epoch, confirmed: .epoch)
  }
}

/// A push token in the registry.
///
/// The object is immutable. The daemon passes a token on a dozen times and then keeps it in both registries, and each
/// copy of a reference retains one object instead of every text.
package final class Token: Equatable, Sendable {
  /// The token as it is stored.
  package let record: TokenRecord
  /// Identifies the token in events, which must not contain the token value.
  package let fingerprint: Text

  package init(_ record: consuming TokenRecord, fingerprint: Text) {
    self.record = record
    self.fingerprint = fingerprint
  }

  package convenience init(
    number: Int64, app: Text, provider: Text, value: Text, environment: Text?, topic: Text?, device: UUID,
    isValid: Bool, created: Timestamp, changed: Timestamp, confirmed: Timestamp, fingerprint: Text
  ) {
    self.init(
      TokenRecord(
        number: number, app: app, provider: provider, value: value, environment: environment, topic: topic,
        device: device, isValid: isValid, created: created, changed: changed, confirmed: confirmed),
      fingerprint: fingerprint)
  }

  /// See ``TokenRecord/number``.
  package var number: Int64 { record.number }
  /// See ``TokenRecord/app``.
  package var app: Text { record.app }
  /// See ``TokenRecord/provider``.
  package var provider: Text { record.provider }
  /// See ``TokenRecord/value``.
  package var value: Text { record.value }
  /// See ``TokenRecord/environment``.
  package var environment: Text? { record.environment }
  /// See ``TokenRecord/topic``.
  package var topic: Text? { record.topic }
  /// See ``TokenRecord/device``.
  package var device: UUID { record.device }
  /// See ``TokenRecord/isValid``.
  package var isValid: Bool { record.isValid }
  /// See ``TokenRecord/created``.
  package var created: Timestamp { record.created }
  /// See ``TokenRecord/changed``.
  package var changed: Timestamp { record.changed }
  /// See ``TokenRecord/confirmed``.
  package var confirmed: Timestamp { record.confirmed }

  /// Returns a copy of the token with some properties changed.
  package func with(
    number: Int64? = nil, app: Text? = nil, device: UUID? = nil, isValid: Bool? = nil, changed: Timestamp? = nil,
    confirmed: Timestamp? = nil
  ) -> Token {
    var record = record
    if let number { record.number = number }
    if let app { record.app = app }
    if let device { record.device = device }
    if let isValid { record.isValid = isValid }
    if let changed { record.changed = changed }
    if let confirmed { record.confirmed = confirmed }
    return Token(record, fingerprint: fingerprint)
  }

  package static func == (left: Token, right: Token) -> Bool {
    left === right || left.record == right.record && left.fingerprint == right.fingerprint
  }
}

/// The kind of change of a token that exists afterwards.
package enum TokenChange: Equatable, Sendable {
  case created
  case replaced
  /// The app put the same token again. No event is sent.
  case confirmed
  case invalidated
  /// The device identifier changed, or is again that of the token.
  case rehomed(from: UUID)
  /// The token was left to the machine that this one may be a copy of, and keeps its device identifier. Nothing is stored.
  case copied
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
  /// Whether the provider has just issued the token to this device, so that the token is valid although it was left to
  /// another machine.
  package let isRenewed: Bool

  package init(
    provider: Text, value: Text, environment: Text? = nil, topic: Text? = nil, isRenewed: Bool = false
  ) {
    self.provider = provider
    self.value = value
    self.environment = environment
    self.topic = topic
    self.isRenewed = isRenewed
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
