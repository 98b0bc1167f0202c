import IdentityWire
import Testing

struct HTTPRequestTests {
  private func isHTTP(_ line: String) -> Bool { HTTPRequest.hasLine(Array(line.utf8).span) }

  @Test(arguments: ["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PRI", "PUT", "TRACE"])
  func `a line that begins with a method and names a version is HTTP`(method: String) {
    for line in ["\(method) / HTTP/1.1", "\(method) * HTTP/2.0", "\(method) HTTP/1.0", "\(method) /a\\\"b HTTP/1.1"] {
      #expect(isHTTP(line) && isHTTP("  \(line)"), "\(line)")
      #expect(isHTTP(line.replacing(method, with: method.lowercased())), "\(line)")
    }
    for line in [
      "\(method)", "\(method) ", "\(method) /", "\(method) /HTTP/1.1", "\(method)HTTP/1.1", "\(method) HTTP",
    ] {
      #expect(!isHTTP(line), "\(line)")
    }
    #expect(
      !isHTTP("\(method)S / HTTP/1.1") && !isHTTP("x \(method) / HTTP/1.1") && !isHTTP("\"\(method)\" / HTTP/1.1"))
  }

  @Test(arguments: ["Host: localhost", "host:", "HOST:x", "  hOsT: a"])
  func `a Host field is HTTP`(line: String) { #expect(isHTTP(line)) }

  @Test(arguments: [
    "", " ", "Host", "Host :", "Host\u{1a}", "Hosts: x", "X-Host: x", "item put service=HTTP/1.1", "\"Host:\" x",
  ])
  func `no other line is HTTP`(line: String) { #expect(!isHTTP(line)) }
}
