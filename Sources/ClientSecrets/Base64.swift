import CSodium
import LinuxSystem

/// Base64 as the protocol has it: RFC 4648, section 4, with padding. The time it takes tells nothing of the bytes.
package enum Base64 {
  /// How many characters stand for so many bytes.
  package static func length(of count: Int) -> Int { (count + 2) / 3 * 4 }

  /// Appends the text for the bytes. The array does not move in memory where it has room for that and one byte more.
  package static func append(_ bytes: ArraySlice<UInt8>, to text: inout [UInt8]) {
    unsafe bytes.withUnsafeBufferPointer { buffer in
      guard let start = buffer.baseAddress else { return }
      unsafe append(start, count: buffer.count, to: &text)
    }
  }

  /// The bytes that the text stands for; nil where it is not Base64, or has bits that stand for nothing.
  package static func decode(_ text: [UInt8]) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: text.count / 4 * 3)
    var count = 0
    let result = unsafe text.withUnsafeBytes { input in
      // Without a place for the end of what was read, all of it has to be Base64.
      unsafe sodium_base642bin(
        &bytes, bytes.count, input.baseAddress?.assumingMemoryBound(to: CChar.self), input.count, nil, &count, nil,
        sodium_base64_VARIANT_ORIGINAL)
    }
    guard result == 0 else {
      bytes.wipe()
      return nil
    }
    bytes.removeLast(bytes.count - count)
    return bytes
  }

  static func append(_ bytes: UnsafePointer<UInt8>, count: Int, to text: inout [UInt8]) {
    let end = text.count
    // C wants a zero behind it.
    let room = length(of: count) + 1
    text.append(contentsOf: repeatElement(0, count: room))
    unsafe text.withUnsafeMutableBytes { buffer in
      guard let start = buffer.baseAddress else { return }
      let place = unsafe (start + end).assumingMemoryBound(to: CChar.self)
      _ = unsafe sodium_bin2base64(place, room, bytes, count, sodium_base64_VARIANT_ORIGINAL)
    }
    text.removeLast()
  }
}
