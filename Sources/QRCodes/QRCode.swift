import CQREncode
import Glibc

/// A QR code: a square of dark and light modules, of which a reader can do without 15 %.
package enum QRCode {
  /// Encodes a text. The caller wipes the rows if the text is a secret.
  ///
  /// Wipes the copy of the text and the modules. libqrencode frees its own copies of the text unwiped.
  ///
  /// - Returns: the rows from the top, with slashes between them: 1 is a dark module, and 0 a light one. The light margin
  ///   is not included. Nil if the text is too long, or if there is not enough memory.
  package static func rows(of text: borrowing Span<UInt8>) -> [UInt8]? {
    var terminated = [CChar](repeating: 0, count: text.count + 1)
    for index in text.indices { terminated[index] = CChar(bitPattern: text[index]) }
    defer { unsafe explicit_bzero(&terminated, terminated.count) }
    guard let code = unsafe QRcode_encodeString(terminated, 0, QR_ECLEVEL_M, QR_MODE_8, 1) else { return nil }
    defer { unsafe QRcode_free(code) }
    let width = unsafe Int(code.pointee.width)
    let modules = unsafe UnsafeMutableBufferPointer(start: code.pointee.data, count: width * width)
    var rows: [UInt8] = []
    // A growing array would leave copies in memory.
    rows.reserveCapacity(width * (width + 1))
    for place in 0..<width * width {
      if place > 0, place.isMultiple(of: width) { rows.append(UInt8(ascii: "/")) }
      // The lowest bit tells the colour.
      rows.append(UInt8(ascii: "0") + (unsafe modules[place] & 1))
    }
    // libqrencode frees its memory without wiping it.
    unsafe modules.update(repeating: 0)
    return rows
  }
}
