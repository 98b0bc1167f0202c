package import IdentityCore
package import IdentityWire

/// An event as received from the daemon.
package struct ReceivedEvent: Equatable, Sendable {
  /// The sequence number.
  package let sequence: Int64
  /// The topic and the name, then any positional words that a later protocol may add.
  package let words: [Text]
  /// The attributes, in the order received.
  package let attributes: [ReplyLine.Attribute]

  /// Creates an event from the words of an `EVENT` line.
  package init(sequence: Int64, content: ReplyLine.Content) {
    self.sequence = sequence
    words = content.words
    attributes = content.attributes
  }

  /// The number of the last event before the missing ones, if this is a lag line (identityd-protocol(7),
  /// Lag); else nil.
  var lagFrom: Int64? {
    guard words == ["lag"] else { return nil }
    // A lag line without `from=` means that the missing events follow the last event received.
    return attributes.first { $0.name == "from" }.flatMap { Int64($0.value.description) } ?? 0
  }
}
