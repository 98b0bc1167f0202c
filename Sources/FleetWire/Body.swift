package import IdentityCore

/// The plaintext of a message, without the signature at its end.
package struct Body: Equatable, Sendable {
  /// The plaintext is padded to a multiple of this many bytes, which hides the length of names.
  static let blockLength = 128
  /// The number of bytes before the fields.
  private static let prefixLength = 68
  /// The number of bytes of the signature.
  package static let signatureLength = 64
  /// The fewest bytes of a plaintext: no fields, rounded up to whole blocks.
  static let shortest = 2 * blockLength
  /// The most bytes of a plaintext that members read.
  static let longest = 31 * blockLength

  /// The device that the message is about.
  package var subject: UUID
  /// The number of times that the subject has joined the account, from 1.
  package var generation: UInt32
  /// The number of the message among those of its author about the subject. Counters rise.
  package var counter: UInt64
  /// The run of the process that wrote the message.
  package var run: Run
  /// The time of writing, which is shown. Only the age of an old tombstone is taken from it.
  package var time: Timestamp
  /// The device that wrote the message.
  package var author: UUID
  /// The fields.
  package var fields: Fields

  package init(
    subject: UUID, generation: UInt32, counter: UInt64, run: Run, time: Timestamp, author: UUID, fields: Fields
  ) {
    self.subject = subject
    self.generation = generation
    self.counter = counter
    self.run = run
    self.time = time
    self.author = author
    self.fields = fields
  }

  /// Returns the encoded and padded plaintext up to the signature; nil if a field has no permitted length, or if the fields
  /// are too long for a message of the kind.
  ///
  /// The array has room for the signature. A growing array would leave copies in memory, and fields can be secret.
  package func unsignedBytes(for kind: MessageKind) -> [UInt8]? {
    let length = Self.prefixLength + fields.length
    let blocks = (length + Self.signatureLength + Self.blockLength - 1) / Self.blockLength
    guard fields.arePermitted, blocks * Self.blockLength <= kind.longestPlaintext else { return nil }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(blocks * Self.blockLength)
    bytes += subject.bytes + generation.bigEndianBytes + counter.bigEndianBytes + run.bytes
    bytes += time.unsignedMilliseconds.bigEndianBytes + author.bytes
    fields.append(to: &bytes)
    bytes += repeatElement(0, count: blocks * Self.blockLength - Self.signatureLength - length)
    return bytes
  }

  /// Parses a plaintext, and checks that it has the fields that its kind requires.
  ///
  /// - Parameters:
  ///   - plaintext: the plaintext with its signature.
  ///   - kind: the kind of the message.
  package init(parsing plaintext: [UInt8], kind: MessageKind) throws(Rejection) {
    guard plaintext.count >= Self.shortest, plaintext.count <= kind.longestPlaintext,
      plaintext.count.isMultiple(of: Self.blockLength)
    else { throw .length }
    let end = plaintext.count - Self.signatureLength
    func number<Number: FixedWidthInteger & UnsignedInteger>(_ range: Range<Int>) -> Number {
      Number(bigEndian: plaintext[range])
    }
    self.init(
      subject: UUID(high: number(0..<8), low: number(8..<16)), generation: number(16..<20), counter: number(20..<28),
      run: Run(high: number(28..<36), low: number(36..<44)),
      time: Timestamp(unsignedMilliseconds: number(44..<52)),
      author: UUID(high: number(52..<60), low: number(60..<68)),
      fields: try Fields(parsing: plaintext[Self.prefixLength..<end]))
    guard !subject.isPlaceholder, !author.isPlaceholder, generation > 0 else { throw .fields }
    for field in kind.requiredFields where fields[field] == nil { throw .fields }
    for field in [FieldType.name, .system, .daemon, .status] {
      if let text = fields[field], Text(validating: text) == nil { throw .fields }
    }
  }
}
