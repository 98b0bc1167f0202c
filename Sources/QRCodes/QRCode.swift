import CQREncode

/// A QR code: a square of dark and light modules, of which a reader can do without 15 %.
package struct QRCode: Equatable, Sendable {
  /// The rows from the top, each from the left: true for a dark module. The light margin is not included.
  package let rows: [[Bool]]

  /// Encodes a text. Nil if it is too long, or if there is not enough memory.
  package init?(of text: String) {
    guard let code = unsafe QRcode_encodeString(text, 0, QR_ECLEVEL_M, QR_MODE_8, 1) else { return nil }
    defer { unsafe QRcode_free(code) }
    let width = unsafe Int(code.pointee.width)
    let modules = unsafe UnsafeMutableBufferPointer(start: code.pointee.data, count: width * width)
    // The lowest bit tells the colour.
    rows = (0..<width).map { row in (0..<width).map { column in unsafe modules[row * width + column] & 1 == 1 } }
    // The text may be a secret, and libqrencode frees its memory without wiping it.
    unsafe modules.update(repeating: 0)
  }
}
