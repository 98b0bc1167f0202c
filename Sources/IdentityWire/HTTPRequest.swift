/// The recognition of HTTP lines, as a defence against cross-protocol request forgery.
///
/// A browser or another program that is directed to the socket sends HTTP lines before the text of a web page. The
/// connection ends with the first HTTP line, so the daemon never carries out the text of the page.
package enum HTTPRequest {
  /// The methods of RFC 9110 and RFC 5789, and the first word of HTTP/2 (RFC 9113, section 3.4), in lower case.
  ///
  /// The comparison ignores case, because `fetch` in browsers sends `patch` as the page writes it.
  private static let methods = [
    "connect", "delete", "get", "head", "options", "patch", "post", "pri", "put", "trace",
  ].map { Array("\($0) ".utf8) }
  private static let version = Array(" HTTP/".utf8)
  private static let host = Array("host:".utf8)

  /// Returns whether a refused line begins an HTTP request or is a `Host:` field.
  ///
  /// Only for refused lines, because `GET key HTTP/1.1` is also a valid request of identityd's own protocol.
  package static func hasLine(_ line: borrowing Span<UInt8>) -> Bool {
    // Skips the spaces that any request may begin with.
    var start = 0
    while start < line.count, line[start] == UInt8(ascii: " ") { start += 1 }
    if has(host, at: start, of: line, lowercased) { return true }
    guard methods.contains(where: { has($0, at: start, of: line, lowercased) }) else { return false }
    return (start..<line.count).contains { has(version, at: $0, of: line, \.self) }
  }

  private static func has(
    _ text: [UInt8], at offset: Int, of line: borrowing Span<UInt8>, _ form: (UInt8) -> UInt8
  ) -> Bool {
    guard line.count - offset >= text.count else { return false }
    return text.indices.allSatisfy { form(line[offset + $0]) == text[$0] }
  }
}
