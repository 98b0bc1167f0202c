package import IdentityCore
package import IdentityWire

/// An event as it came from the daemon.
package struct ReceivedEvent: Equatable, Sendable {
  /// Its number.
  package let sequence: Int64
  /// Topic and name, then anything else there may be one day.
  package let words: [Text]
  /// The particulars, in the order they came.
  package let attributes: [ReplyLine.Attribute]

  /// Takes what was read behind `EVENT`.
  package init(sequence: Int64, content: ReplyLine.Content) {
    self.sequence = sequence
    words = content.words
    attributes = content.attributes
  }

  /// Where it says that events were left out: the number of the last one before those.
  var lagFrom: Int64? {
    guard words == ["lag"] else { return nil }
    // One that does not say from where leaves out what follows the last one that came.
    return attributes.first { $0.name == "from" }.flatMap { Int64($0.value.description) } ?? 0
  }
}
