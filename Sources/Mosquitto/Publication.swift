/// A message to be published.
package struct Publication: Equatable, Sendable {
  /// The topic.
  package let topic: String
  /// The content. An empty one deletes the retained message of the topic.
  package let payload: [UInt8]
  /// Whether the broker keeps the message for later subscribers. Then it is also asked to acknowledge the message.
  package let isRetained: Bool

  package init(topic: String, payload: [UInt8], isRetained: Bool) {
    self.topic = topic
    self.payload = payload
    self.isRetained = isRetained
  }

  /// The approximate size in memory, in bytes.
  var size: Int { 64 + topic.utf8.count + payload.count }
}

/// A message that a broker sent.
package struct Delivery: Equatable, Sendable {
  /// The most bytes of a payload that are kept. No message is so long, so a cut one is recognized by its length.
  package static let longestPayload = 32_769

  /// The topic.
  package let topic: String
  /// The content, cut after ``longestPayload`` bytes.
  package let payload: [UInt8]
  /// Whether the broker had kept the message for new subscribers, in contrast to a live one.
  package let isRetained: Bool

  package init(topic: String, payload: [UInt8], isRetained: Bool) {
    self.topic = topic
    self.payload = payload
    self.isRetained = isRetained
  }

  /// The approximate size in memory, in bytes.
  var size: Int { 64 + topic.utf8.count + payload.count }
}
