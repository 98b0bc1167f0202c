/// Requests of another protocol: a browser that was led to the socket sends its own lines around those of a page
/// (cross-protocol request forgery). The connection ends with the first of them, before anything of the page is carried out.
package enum HTTPRequest {
  /// The methods of RFC 9110 and RFC 5789.
  private static let methods = ["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"].map {
    Array("\($0) ".utf8)
  }
  private static let version = Array(" HTTP/".utf8)
  private static let host = Array("host:".utf8)

  /// Whether a line that was refused begins such a request, or is its `Host:` field.
  package static func hasLine(_ line: borrowing Span<UInt8>) -> Bool {
    if has(host, at: 0, of: line, ignoresCase: true) { return true }
    guard methods.contains(where: { has($0, at: 0, of: line) }) else { return false }
    return line.indices.contains { has(version, at: $0, of: line) }
  }

  private static func has(_ text: [UInt8], at place: Int, of line: borrowing Span<UInt8>, ignoresCase: Bool = false)
    -> Bool
  {
    guard line.count - place >= text.count else { return false }
    return text.indices.allSatisfy { index in
      let byte = line[place + index]
      return byte == text[index] || ignoresCase && byte | 0x20 == text[index]
    }
  }
}
