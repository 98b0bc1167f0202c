import CSodium
import LinuxSystem

/// Base64 in the form of the protocol: RFC 4648, section 4, with padding. The run time does not depend on the bytes.
package enum Base64 {
  /// Returns the length of the text for a number of bytes.
  package static func length(of count: Int) -> Int { (count + 2) / 3 * 4 }

  /// Appends the text for the bytes. The array is not reallocated if it has room for the text and one more byte.
  package static func append(_ bytes: ArraySlice<UInt8>, to text: inout [UInt8]) {
    unsafe bytes.withUnsafeBufferPointer { buffer in
      guard let start = buffer.baseAddress else { return }
      unsafe append(start, count: buffer.count, to: &text)
    }
  }

  /// Decodes a text.
  ///
  /// - Returns: The bytes; nil if the text is not Base64, or if its unused bits are not zero.
  package static func decode(_ text: [UInt8]) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: text.count / 4 * 3)
    var count = 0
    let result = unsafe text.withUnsafeBytes { input in
      // Without an end pointer, libsodium requires the whole input to be Base64.
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
    // One byte more than the text, for the terminating NUL.
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
