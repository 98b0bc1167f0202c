/// The reason why a message is dropped. The checks run in the order of the cases.
package enum Rejection: Error, Hashable, Sendable, CaseIterable {
  /// The message is too short or too long.
  case length
  /// The message does not begin with the two bytes of this format.
  case magic
  /// A later release wrote the message in a format that this release cannot read.
  case version
  /// The kind of the message is unknown, or does not belong on its topic.
  case kind
  /// The key of the message's epoch is unknown.
  case epoch
  /// The message was not sealed for this topic with the key of its epoch.
  case seal
  /// The plaintext has no valid form, or lacks a field that its kind requires.
  case fields
  /// The signature is wrong.
  case signature
  /// The message is about another device than its topic.
  case subject
  /// The author may not make this statement, or has another key.
  case author
}
