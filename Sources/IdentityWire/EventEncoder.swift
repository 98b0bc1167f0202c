package import IdentityCore

extension Event {
  /// Appends the line `EVENT seq topic name attribute…` with its LF.
  ///
  /// The last attribute is `time=`, the time of the event, which a client that replays events could not know otherwise.
  package func append(to output: inout [UInt8]) {
    guard needsNoQuotes else { return appendQuoting(to: &output) }
    let length = attributes.reduce(Self.longestFrame + topic.text.bytes.count + name.bytes.count) {
      $0 + $1.name.bytes.count + $1.value.bytes.count + 2
    }
    // Appends the line in one piece, because an array checks its storage for each byte that is appended alone.
    output.append(addingCapacity: length) { line in
      line.append(Self.begin)
      line.append(decimal: sequence)
      line.append(UInt8(ascii: " "))
      line.append(topic.text)
      line.append(UInt8(ascii: " "))
      line.append(name)
      for attribute in attributes {
        line.append(UInt8(ascii: " "))
        line.append(attribute.name)
        line.append(UInt8(ascii: "="))
        line.append(attribute.value)
      }
      line.append(Self.beginTime)
      time.append(to: &line)
      line.append(UInt8(ascii: "\n"))
    }
  }

  /// The beginning of each line.
  static let begin: Text = "EVENT "
  private static let beginTime: Text = " time="
  /// The length of the fixed parts of a line, with the longest number and time.
  private static let longestFrame = begin.bytes.count + 20 + 2 + beginTime.bytes.count + Timestamp.textLength + 1

  private var needsNoQuotes: Bool {
    guard WordEncoder.isBareWord(name.bytes) else { return false }
    for attribute in attributes where !WordEncoder.isBare(attribute.value.bytes) { return false }
    return true
  }

  private func appendQuoting(to output: inout [UInt8]) {
    output.append(contentsOf: "EVENT ".utf8)
    output.append(contentsOf: String(sequence).utf8)
    output.append(UInt8(ascii: " "))
    output.append(contentsOf: topic.rawValue.utf8)
    output.append(UInt8(ascii: " "))
    WordEncoder.append(word: name.bytes, to: &output)
    for attribute in attributes {
      output.append(UInt8(ascii: " "))
      output.append(contentsOf: attribute.name.bytes)
      output.append(UInt8(ascii: "="))
      WordEncoder.append(value: attribute.value.bytes, to: &output)
    }
    output.append(contentsOf: " time=".utf8)
    time.append(to: &output)
    output.append(UInt8(ascii: "\n"))
  }

  /// Appends the lag line, which tells a subscriber about the events that it missed.
  ///
  /// The subscriber missed `missed` events after number `from`, the last of them with number `sequence`.
  /// `subscribe since=FROM` replays the missed events.
  package static func appendLag(sequence: Int64, missed: Int64, from: Int64, to output: inout [UInt8]) {
    output.append(contentsOf: "EVENT \(sequence) lag missed=\(missed) from=\(from)\n".utf8)
  }
}

extension OutputSpan<UInt8> {
  /// Appends a text. The span must have enough room.
  @inline(__always)
  fileprivate mutating func append(_ text: Text) {
    for index in text.bytes.indices { append(text.bytes[index]) }
  }

  /// Appends a number in decimal digits. The number must not be negative.
  fileprivate mutating func append(decimal number: Int64) {
    var power: Int64 = 1
    while number / power >= 10 { power *= 10 }
    while power > 0 {
      append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number / power % 10))
      power /= 10
    }
  }
}
