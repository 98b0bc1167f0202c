import CSodium

/// Base64 text (RFC 4648, section 4), with `=` at its end.
package enum Base64 {
  /// Appends the text of bytes.
  package static func append(_ bytes: ArraySlice<UInt8>, to output: inout [UInt8]) {
    unsafe bytes.withUnsafeBufferPointer { buffer in
      if let start = buffer.baseAddress { unsafe append(start, count: buffer.count, to: &output) }
    }
  }

  static func append(_ bytes: UnsafePointer<UInt8>, count: Int, to output: inout [UInt8]) {
    let variant = sodium_base64_VARIANT_ORIGINAL
    // With the NUL at its end.
    let room = sodium_base64_encoded_len(count, variant)
    let start = output.count
    output.append(contentsOf: repeatElement(0, count: room))
    unsafe output.withUnsafeMutableBytes { buffer in
      guard let text = unsafe buffer.baseAddress?.advanced(by: start) else { return }
      _ = unsafe sodium_bin2base64(text.assumingMemoryBound(to: CChar.self), room, bytes, count, variant)
    }
    output.removeLast()
  }

  /// The bytes of a text, with or without `=`; nil where it is none.
  static func bytes(_ text: [UInt8]) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: text.count / 4 * 3 + 3)
    let room = bytes.count
    let length = unsafe text.withUnsafeBufferPointer { text in
      unsafe bytes.withUnsafeMutableBufferPointer { bytes -> Int? in
        guard let start = text.baseAddress, let target = bytes.baseAddress else { return 0 }
        return unsafe decode(start, count: text.count, into: target, room: room)
      }
    }
    guard let length else { return nil }
    return Array(bytes[..<length])
  }

  /// Decodes a text.
  ///
  /// - Returns: how many bytes it says; nil where it is none, or there is no room.
  static func decode(
    _ text: UnsafePointer<UInt8>, count: Int, into bytes: UnsafeMutablePointer<UInt8>, room: Int
  ) -> Int? {
    let isPadded = unsafe count > 0 && text[count - 1] == UInt8(ascii: "=")
    let variant = isPadded ? sodium_base64_VARIANT_ORIGINAL : sodium_base64_VARIANT_ORIGINAL_NO_PADDING
    var length = 0
    let code = unsafe text.withMemoryRebound(to: CChar.self, capacity: count) { text in
      unsafe sodium_base642bin(bytes, room, text, count, nil, &length, nil, variant)
    }
    return code == 0 ? length : nil
  }
}
