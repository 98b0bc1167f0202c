import LinuxSystem

/// The address of a broker on the command line, and the user there: `mqtts://USER@HOST`, with `:PORT` behind it unless
/// the broker has the usual port.
struct BrokerAddress {
  /// The address without the user, as `Broker=` of identity-fleet.conf(5) has it.
  let url: String
  /// The name of the user; nil if the broker needs none.
  let user: String?

  /// Parses an address. The service judges the host and the port.
  init(_ text: String) throws(CommandLine.UsageError) {
    guard let scheme = ["mqtts://", "mqtt://"].first(where: { text.hasPrefix($0) }) else {
      throw CommandLine.UsageError("'\(text)' is no address of a broker, such as mqtts://USER@HOST")
    }
    let rest = text.dropFirst(scheme.count)
    guard let at = rest.lastIndex(of: "@") else {
      (url, user) = (text, nil)
      return
    }
    let name = rest[..<at]
    guard !name.contains(":") else {
      throw CommandLine.UsageError(
        "every user can read a password on the command line; leave out the one in BROKER, and the command asks for it")
    }
    // The name stands in a line of the configuration.
    guard !name.isEmpty, name.unicodeScalars.allSatisfy({ $0.value > 0x20 && $0.value != 0x7f }) else {
      throw CommandLine.UsageError("'\(name)' cannot be the name of a user in BROKER")
    }
    (url, user) = (scheme + rest[rest.index(after: at)...], String(name))
  }

  /// The user whose name and password follow from the account.
  static let accountUser = "account"
  /// Whether the user has a password that a person knows.
  var needsPassword: Bool { user != nil && user != Self.accountUser }
}
