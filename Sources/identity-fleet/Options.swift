import LinuxSystem

/// The command line of `identity-fleet`.
struct Options {
  static let known: [CommandLine.Option] = [
    .init("config", value: "FILE", "Read only this configuration file."),
    .init("daemon", value: "PATH", "Connect to identityd at this socket."),
    .init("socket", value: "PATH", "Listen for identityctl on this path."),
    .init("check-config", "Check the configuration, report its errors, and exit."),
    .init("version", "Show the version and exit."),
    .init("help", "Show this help and exit."),
  ]

  static var help: String {
    """
    identity-fleet [OPTION…]

    Keeps the devices of an account in touch, over an MQTT broker.

    \(CommandLine.help(known))
    See identity-fleet(8) and identity-fleet.conf(5).

    """
  }

  let configurationFile: String?
  let daemon: String?
  let socket: String?
  let checksConfiguration: Bool
  let showsVersion: Bool
  let showsHelp: Bool

  init(_ arguments: [String]) throws(CommandLine.UsageError) {
    let line = try CommandLine(arguments, onlyOptions: Self.known, of: "identity-fleet")
    configurationFile = line.options["config"]
    daemon = line.options["daemon"]
    socket = line.options["socket"]
    checksConfiguration = line.options["check-config"] != nil
    showsVersion = line.options["version"] != nil
    showsHelp = line.options["help"] != nil
  }
}
