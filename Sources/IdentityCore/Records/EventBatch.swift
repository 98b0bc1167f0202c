/// Consecutive events of one transaction, which share a row and its proof.
package struct EventBatch: StoredRecord {
  package static let table = RecordTable("event_batch", of: Self.self, digestIndex: 4, .events, since: 2)

  /// The maximum number of events in a batch. It bounds the number of events behind a damaged byte that are lost, too.
  package static let most = 256

  /// The sequence number of the last event.
  package private(set) var last: Int64
  /// The sequence number of the first event.
  package private(set) var first: Int64
  /// The audience of each event, a NUL, and its line.
  package private(set) var lines: [UInt8]

  /// - Parameters:
  ///   - numbers: the sequence numbers of the events.
  ///   - lines: the audience of each event, a NUL, and its line.
  package init(_ numbers: ClosedRange<Int64>, lines: [UInt8]) {
    (first, last) = (numbers.lowerBound, numbers.upperBound)
    self.lines = lines
  }

  package init() { self.init(0...0, lines: []) }

  package mutating func visit(_ fields: inout some FieldVisitor) {
    fields.field("last", &last)
    fields.field("first", &first)
    fields.field("lines", &lines)
  }
}
