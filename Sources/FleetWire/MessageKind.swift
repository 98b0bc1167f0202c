/// The kinds of message that devices of an account exchange, and those that leave the account.
package enum MessageKind: UInt8, Sendable, CaseIterable {
  /// A device describes itself.
  case record = 1
  /// A device is removed from the account.
  case tombstone = 2
  /// A device tells that it is connected, or no longer.
  case presence = 3
  /// A device asks which others are connected.
  case who = 4
  /// A device tells a summary of what it knows.
  case digest = 5
  /// A member hands the keys to a newcomer.
  case invitation = 16
  /// A newcomer answers an invitation.
  case answer = 17
  /// A member hands the key of a new epoch to another one.
  case grant = 18
  /// A device describes itself to the admins of its site.
  case report = 32
  /// A device tells a sender its push tokens.
  case tokens = 33
  /// A sender tells a device which of its tokens are invalid.
  case feedback = 34

  /// Whether the message is sealed to the key of one reader, who need not be a member.
  package var isBoxed: Bool {
    switch self {
    case .report, .tokens, .feedback: true
    case .record, .tombstone, .presence, .who, .digest, .invitation, .answer, .grant: false
    }
  }

  /// The most bytes of a plaintext.
  package var longestPlaintext: Int { isBoxed ? 254 * Body.blockLength : Body.longest }

  /// Whether the key comes from a join code or is that of a reader, so that the message belongs to no epoch.
  package var isOutsideEpochs: Bool {
    switch self {
    case .invitation, .answer, .report, .tokens, .feedback: true
    case .record, .tombstone, .presence, .who, .digest, .grant: false
    }
  }

  /// The fields without which a message of this kind is malformed.
  ///
  /// Each message has the key of its author, so that its signature can be checked before the author is known.
  var requiredFields: [FieldType] {
    switch self {
    case .record: [.name, .signingKey, .boxKey, .joined, .home]
    case .tombstone: [.signingKey, .reason]
    case .presence: [.signingKey, .state]
    case .who: [.signingKey]
    case .digest: [.signingKey, .digest]
    case .invitation: [.name, .signingKey, .root, .epoch, .epochKey, .rosterSize, .expiry]
    case .answer: [.name, .signingKey, .boxKey]
    case .grant: [.signingKey, .epoch, .sealedBox]
    case .report: [.name, .signingKey]
    case .tokens: [.signingKey, .boxKey]
    case .feedback: [.signingKey, .invalidToken]
    }
  }
}
