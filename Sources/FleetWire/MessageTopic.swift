/// A topic at the broker on which messages of one kind, or of two, are published.
package enum MessageTopic: Hashable, Sendable {
  /// The record of a device, or its tombstone. Retained.
  case device(AccountID, DeviceTag)
  /// The key of a new epoch for a device. Retained.
  case grant(AccountID, DeviceTag)
  /// The presence of a device. Not retained.
  case presence(AccountID, DeviceTag)
  /// The question which devices are connected. Not retained.
  case who(AccountID)
  /// The summaries of what devices know. Not retained.
  case digest(AccountID)
  /// An invitation. Retained until its code expires.
  case invitation(Rendezvous)
  /// The answer to an invitation. Retained until its code expires.
  case answer(Rendezvous)
  /// The report of a device for the admins of its site. Retained.
  case report(ReaderID, DeviceTag)
  /// The push tokens of a device for one sender. Retained.
  case tokens(ReaderID, DeviceTag)
  /// The findings of a sender about the tokens of a device. Retained.
  case feedback(ReaderID, DeviceTag)

  private static let root = "identityd/v1"

  /// The text of the topic.
  package var text: String {
    switch self {
    case .device(let account, let tag): Self.text(account, "d", tag)
    case .grant(let account, let tag): Self.text(account, "k", tag)
    case .presence(let account, let tag): Self.text(account, "p", tag)
    case .who(let account): "\(Self.root)/\(account)/w"
    case .digest(let account): "\(Self.root)/\(account)/h"
    case .invitation(let rendezvous): "\(Self.root)/join/\(rendezvous)/i"
    case .answer(let rendezvous): "\(Self.root)/join/\(rendezvous)/a"
    case .report(let reader, let tag): "\(Self.root)/site/\(reader)/\(Self.place(tag))"
    case .tokens(let reader, let tag): "\(Self.root)/sender/\(reader)/\(Self.place(tag))"
    case .feedback(let reader, let tag): "\(Self.root)/feedback/\(reader)/\(Self.place(tag))"
    }
  }

  private static func place(_ tag: DeviceTag) -> String { "\(String(tag.bucket, radix: 16))/\(tag)" }

  private static func text(_ account: AccountID, _ letter: String, _ tag: DeviceTag) -> String {
    "\(root)/\(account)/\(letter)/\(place(tag))"
  }

  /// Parses the text of a topic; nil for any other text.
  package init?(parsing text: String) {
    let words = text.split(separator: "/", omittingEmptySubsequences: false)
    guard words.count >= 4, words[0] == "identityd", words[1] == "v1" else { return nil }
    switch (words.count, words[3]) {
    case (4, "w"):
      guard let account = AccountID(hexadecimal: words[2]) else { return nil }
      self = .who(account)
    case (4, "h"):
      guard let account = AccountID(hexadecimal: words[2]) else { return nil }
      self = .digest(account)
    case (6, _) where ["site", "sender", "feedback"].contains(words[2]):
      guard let reader = ReaderID(hexadecimal: words[3]), let tag = DeviceTag(hexadecimal: words[5]) else { return nil }
      switch words[2] {
      case "site": self = .report(reader, tag)
      case "sender": self = .tokens(reader, tag)
      default: self = .feedback(reader, tag)
      }
    case (5, _):
      guard words[2] == "join", let rendezvous = Rendezvous(hexadecimal: words[3]) else { return nil }
      switch words[4] {
      case "i": self = .invitation(rendezvous)
      case "a": self = .answer(rendezvous)
      default: return nil
      }
    case (6, let letter):
      guard let account = AccountID(hexadecimal: words[2]), let tag = DeviceTag(hexadecimal: words[5]) else {
        return nil
      }
      switch letter {
      case "d": self = .device(account, tag)
      case "k": self = .grant(account, tag)
      case "p": self = .presence(account, tag)
      default: return nil
      }
    default: return nil
    }
    guard self.text == text else { return nil }
  }

  /// The tag of the device that the messages on this topic are about; nil if the topic belongs to no device.
  package var tag: DeviceTag? {
    switch self {
    case .device(_, let tag), .grant(_, let tag), .presence(_, let tag), .report(_, let tag), .tokens(_, let tag),
      .feedback(_, let tag):
      tag
    case .who, .digest, .invitation, .answer: nil
    }
  }

  /// Returns whether messages of a kind belong on this topic.
  package func admits(_ kind: MessageKind) -> Bool {
    switch (self, kind) {
    case (.device, .record), (.device, .tombstone), (.grant, .grant), (.presence, .presence), (.who, .who),
      (.digest, .digest),
      (.invitation, .invitation), (.answer, .answer), (.report, .report), (.tokens, .tokens), (.feedback, .feedback):
      true
    default: false
    }
  }
}

/// A subscription at the broker. None uses `#`, which some brokers refuse.
package enum TopicFilter: Hashable, Sendable {
  /// The records of all devices of an account.
  case roster(AccountID)
  /// The records of the devices whose tags begin with a hexadecimal digit.
  case bucket(AccountID, UInt8)
  /// The presences of all devices of an account.
  case presences(AccountID)
  /// The reports for one site of the devices whose tags begin with a hexadecimal digit.
  case reports(ReaderID, UInt8)
  /// The tokens for one sender of the devices whose tags begin with a hexadecimal digit.
  case tokens(ReaderID, UInt8)
  /// One topic.
  case only(MessageTopic)

  /// The text of the filter.
  package var text: String {
    switch self {
    case .roster(let account): "identityd/v1/\(account)/d/+/+"
    case .bucket(let account, let bucket): "identityd/v1/\(account)/d/\(String(bucket, radix: 16))/+"
    case .presences(let account): "identityd/v1/\(account)/p/+/+"
    case .reports(let reader, let bucket): "identityd/v1/site/\(reader)/\(String(bucket, radix: 16))/+"
    case .tokens(let reader, let bucket): "identityd/v1/sender/\(reader)/\(String(bucket, radix: 16))/+"
    case .only(let topic): topic.text
    }
  }
}
