package import IdentityCore

extension Event {
  /// Appends `EVENT seq topic name attribute…` with its LF.
  ///
  /// `time=`, when it happened, comes last: a client that replays events could not know it otherwise.
  package func append(to output: inout [UInt8]) {
    output.reserveCapacity(output.count + 160)
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

  /// Appends the line that tells a subscriber what it did not get: `missed` events after number `from`, the last of them
  /// `sequence`. `subscribe since=FROM` brings them.
  package static func appendLag(sequence: Int64, missed: Int64, from: Int64, to output: inout [UInt8]) {
    output.append(contentsOf: "EVENT \(sequence) lag missed=\(missed) from=\(from)\n".utf8)
  }
}
