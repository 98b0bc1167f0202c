/// Lines of HTTP. A browser or another program that is led to the socket sends its own lines around those of a page
/// (cross-protocol request forgery), so the connection ends with the first line of HTTP: the page is never carried out.
package enum HTTPRequest {
  /// The methods of RFC 9110 and RFC 5789, and the word that HTTP/2 begins with (RFC 9113, section 3.4). In lower case:
  /// `fetch` of browsers sends `patch` as it is written.
  private static let methods = [
    "connect", "delete", "get", "head", "options", "patch", "post", "pri", "put", "trace",
  ].map { Array("\($0) ".utf8) }
  private static let version = Array(" HTTP/".utf8)
  private static let host = Array("host:".utf8)

  /// Whether a line that was refused begins a request of HTTP, or is its `Host:` field.
  ///
  /// Only for a line that was refused: `GET key HTTP/1.1` is a request of identityd's own protocol, too.
  package static func hasLine(_ line: borrowing Span<UInt8>) -> Bool {
    // As before the first word of any request.
    var start = 0
    while start < line.count, line[start] == UInt8(ascii: " ") { start += 1 }
    if has(host, at: start, of: line, lowercased) { return true }
    guard methods.contains(where: { has($0, at: start, of: line, lowercased) }) else { return false }
    return (start..<line.count).contains { has(version, at: $0, of: line, \.self) }
  }

  private static func has(
    _ text: [UInt8], at place: Int, of line: borrowing Span<UInt8>, _ form: (UInt8) -> UInt8
  ) -> Bool {
    guard line.count - place >= text.count else { return false }
    return text.indices.allSatisfy { form(line[place + $0]) == text[$0] }
  }
}
