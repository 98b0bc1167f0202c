package import ConfigurationFiles
import FleetSeal
import FleetWire
import IdentityClient

extension FleetConfiguration: ProgramConfiguration {
  /// The settings of `identity-fleet.conf`: the complete table, which the manual is tested against.
  package static let keys: [ConfigurationKey<FleetConfiguration>] = [
    ConfigurationKey(
      section: "Fleet", name: "Broker",
      allowed: "mqtts://HOST[:PORT] or mqtt://HOST[:PORT], in at most \(mostBrokers) lines"
    ) { result, value in
      append(value, to: &result.brokers, atMost: mostBrokers) { BrokerPattern($0) }
    },
    .flag("Fleet", "AllowPlaintext", \.allowsPlaintext),
    path("CAFile") { $0.authorities = $1 ?? FleetConfiguration().authorities },
    path("Certificate") { $0.certificate = $1 },
    path("Key") { $0.certificateKey = $1 },
    ConfigurationKey(section: "Fleet", name: "Username", allowed: "account, or the name of a user at the broker") {
      result, value in
      result.user = value.isEmpty ? nil : value == "account" ? .account : .named(value)
      return true
    },
    .duration("Fleet", "Heartbeat", 3_600...2_592_000, "1h to 30d", \.heartbeat),
    .duration("Fleet", "Resync", 900...604_800, "15min to 7d", \.resync),
    .duration("Fleet", "KeepAlive", 15...900, "15s to 15min", \.keepAlive),
    .duration("Fleet", "Spread", 0...600, "0 to 10min", \.spread),
    .flag("Fleet", "Presence", \.presence),
    .choice("Fleet", "OnTwin", \.onTwin),
    ConfigurationKey(section: "Fleet", name: "SiteKey", allowed: "a public key of 32 bytes in Base64") {
      result, value in
      result.siteKey = publicKeys(value, 1)?.first.flatMap { $0.takesBoxes ? $0 : nil }
      return value.isEmpty || result.siteKey != nil
    },
    ConfigurationKey(
      section: "Fleet", name: "Sender",
      allowed: "a name and two public keys, 64 bytes in Base64, in at most \(mostSenders) lines"
    ) { result, value in
      append(value, to: &result.senders, atMost: mostSenders) { text in
        let words = text.split(separator: " ")
        guard words.count == 2, let keys = publicKeys(words[1], 2), keys[0].takesBoxes else { return nil }
        return Sender(name: String(words[0]), boxKey: keys[0], signingKey: keys[1])
      }
    },
    ConfigurationKey(section: "Fleet", name: "AdminGroup", allowed: "the name of a group") { result, value in
      result.adminGroup = value.isEmpty ? nil : value
      return !value.contains(" ")
    },
  ]

  private static func path(
    _ name: String, _ set: @escaping @Sendable (inout FleetConfiguration, String?) -> Void
  ) -> ConfigurationKey<FleetConfiguration> {
    ConfigurationKey(section: "Fleet", name: name, allowed: "an absolute path") { result, value in
      guard value.isEmpty || value.utf8.first == UInt8(ascii: "/") else { return false }
      set(&result, value.isEmpty ? nil : value)
      return true
    }
  }

  /// Appends a value to a list, which an empty value clears (systemd.syntax(7)).
  private static func append<Value>(
    _ text: String, to list: inout [Value], atMost most: Int, _ parse: (String) -> Value?
  ) -> Bool {
    guard !text.isEmpty else {
      list = []
      return true
    }
    guard list.count < most, let value = parse(text) else { return false }
    list.append(value)
    return true
  }

  /// Parses public keys that follow each other.
  private static func publicKeys(_ text: some StringProtocol, _ count: Int) -> [PublicKey]? {
    let letters = Array(text.utf8)
    guard let bytes = Base64Text.decode(letters.span), bytes.count == count * PublicKey.length else {
      return nil
    }
    return stride(from: 0, to: bytes.count, by: PublicKey.length).compactMap { start in
      PublicKey(bytes[start..<start + PublicKey.length])
    }
  }
}
