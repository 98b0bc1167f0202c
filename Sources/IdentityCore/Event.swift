/// The subject of an event (identityd-protocol(7), section "EVENTS").
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
  case proof

  /// The index of the topic among all topics.
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
    case .proof: 9
    }
  }

  /// The name of the topic.
  package var text: Text { Self.texts[index] }

  private static let texts = allCases.map { Text($0.rawValue) }
}

/// The peers that may see an event: those that could read the changed value.
package enum Audience: Hashable, Sendable {
  /// Every app that shares the shared device identifier.
  case sharing
  /// The apps of one vendor.
  case vendor(Text)
  /// One app.
  case app(Text)
  /// The apps that may use an access group.
  case group(Text)
}

/// A published change. Events are numbered without gaps.
package struct Event: Equatable, Sendable {
  /// An attribute of an event: `name=value`.
  package struct Attribute: Equatable, Sendable {
    /// The name, in lower case.
    package let name: Text
    /// The value as text.
    package let value: Text

    package init(_ name: Text, _ value: Text) {
      self.name = name
      self.value = value
    }
  }

  /// The sequence number, from 1.
  package let sequence: Int64
  /// The time of the change.
  package let time: Timestamp
  /// The subject of the event.
  package let topic: Topic
  /// The kind of change: `created`, `changed`, …
  package let name: Text
  /// The particulars, in the order in which they are written.
  package let attributes: [Attribute]
  /// The peers that may see the event.
  package let audience: Audience

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

/// A position in the sequence of events.
package struct EventNumber: Equatable, Sendable {
  /// The sequence number of the last event before the position.
  package let sequence: Int64
  /// The epoch of the sequence number; nil if the client did not keep it.
  package let epoch: Text?

  package init(_ sequence: Int64, epoch: Text? = nil) {
    self.sequence = sequence
    self.epoch = epoch
  }
}
