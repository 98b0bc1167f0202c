package import FleetWire

/// The address of a broker in the configuration: `mqtts://HOST` or `mqtt://HOST`, with `:PORT` behind it unless the
/// broker has the usual port.
package struct BrokerPattern: Hashable, Sendable, CustomStringConvertible {
  /// The parts of the host between its marks. The marks `%a2` and `%a4` stand for the first two or four digits of the
  /// account's name, by which accounts are divided among brokers.
  private let host: [String]
  /// The number of digits that stand in front of each part but the first.
  private let digits: [Int]
  private let port: UInt16
  /// Whether the connection is encrypted.
  package let isEncrypted: Bool
  /// The address as it was written.
  package let description: String

  /// Parses an address; nil for any other text.
  package init?(_ text: String) {
    let schemes = [("mqtts://", true, UInt16(8883)), ("mqtt://", false, 1883)]
    guard let (scheme, isEncrypted, usualPort) = schemes.first(where: { text.hasPrefix($0.0) }) else { return nil }
    var host = text.dropFirst(scheme.count)
    var port: Substring?
    var parts: [Substring]
    var digits: [Int] = []
    if host.hasPrefix("["), let end = host.firstIndex(of: "]") {
      // An IPv6 address, whose colons are not those before a port (RFC 3986, section 3.2.2).
      let rest = host[host.index(after: end)...]
      guard rest.isEmpty || rest.hasPrefix(":") else { return nil }
      port = rest.isEmpty ? nil : rest.dropFirst()
      host = host[host.index(after: host.startIndex)..<end]
      guard host.allSatisfy({ $0.isHexDigit || $0 == ":" || $0 == "." }) else { return nil }
      parts = [host]
    } else {
      if let colon = host.firstIndex(of: ":") {
        port = host[host.index(after: colon)...]
        host = host[..<colon]
      }
      // By the character: a search for a text would link the engine of regular expressions (see Decisions/0036).
      parts = host.split(separator: "%" as Character, omittingEmptySubsequences: false)
      for mark in parts.indices.dropFirst() {
        guard let count = [2, 4].first(where: { parts[mark].hasPrefix("a\($0)") }) else { return nil }
        digits.append(count)
        parts[mark].removeFirst(2)
      }
      guard parts.joined().allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber || "-._".contains($0)) }) else {
        return nil
      }
    }
    guard (1...253).contains(host.utf8.count) else { return nil }
    if let port {
      guard port.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }), let number = UInt16(port),
        number > 0
      else { return nil }
      self.port = number
    } else {
      self.port = usualPort
    }
    self.host = parts.map(String.init)
    self.digits = digits
    self.isEncrypted = isEncrypted
    description = text
  }

  /// Whether the address depends on the account.
  package var dependsOnAccount: Bool { host.count > 1 }

  /// Whether the broker is on this machine.
  package var isLoopback: Bool {
    if host == ["localhost"] || host == ["::1"] { return true }
    // A name can begin like an address, too.
    let parts = host.joined(separator: "%").split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil && $0.allSatisfy(\.isNumber) }
  }

  /// Returns the host and the port of the broker for an account, or for a newcomer without one.
  package func address(for account: AccountID?) -> (host: String, port: UInt16) {
    let name = account.map { "\($0)" } ?? ""
    return (zip(digits, host.dropFirst()).reduce(host[0]) { $0 + name.prefix($1.0) + $1.1 }, port)
  }
}
