/// What an event is about (protocol, section 7).
package enum Topic: String, CaseIterable, Sendable {
  case device
  case installation
  case vendor
  case app
  case devices
  case account
  case item
  case version
  case token

  /// Its place among all topics.
  package var index: Int {
    switch self {
    case .device: 0
    case .installation: 1
    case .vendor: 2
    case .app: 3
    case .devices: 4
    case .account: 5
    case .item: 6
    case .version: 7
    case .token: 8
    }
  }

  /// Its name.
  package var text: Text { Self.texts[index] }

  private static let texts = allCases.map { Text($0.rawValue) }
}

/// Who may see an event: whoever could read what it is about.
package enum Audience: Hashable, Sendable {
  /// Everybody who shares the device's own identifier.
  case sharing
  /// The apps of one vendor.
  case vendor(Text)
  /// One app.
  case app(Text)
  /// The apps that may use an access group.
  case group(Text)
}

/// Something that happened, numbered without a gap.
package struct Event: Equatable, Sendable {
  /// `name=value`, in the order they are written.
  package struct Attribute: Equatable, Sendable {
    /// In lower case.
    package let name: Text
    /// The value as text.
    package let value: Text

    /// Puts an attribute together.
    package init(_ name: Text, _ value: Text) {
      self.name = name
      self.value = value
    }
  }

  /// Its number; the first is 1.
  package let sequence: Int64
  /// When it happened.
  package let time: Timestamp
  /// What it is about.
  package let topic: Topic
  /// What happened: `created`, `changed`, …
  package let name: Text
  /// The particulars.
  package let attributes: [Attribute]
  /// Who may see it.
  package let audience: Audience

  /// Puts an event together.
  package init(
    sequence: Int64, time: Timestamp, topic: Topic, name: Text, attributes: [Attribute], audience: Audience
  ) {
    self.sequence = sequence
    self.time = time
    self.topic = topic
    self.name = name
    self.attributes = attributes
    self.audience = audience
  }
}

/// Where somebody has come in the events.
package struct EventNumber: Equatable, Sendable {
  /// The number of the last event that is known.
  package let sequence: Int64
  /// The epoch it is of; nil where that was not kept.
  package let epoch: Text?

  /// Puts both together.
  package init(_ sequence: Int64, epoch: Text? = nil) {
    self.sequence = sequence
    self.epoch = epoch
  }
}
