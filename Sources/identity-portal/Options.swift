import LinuxSystem

/// The command line of `identity-portal`.
struct Options {
  static let known: [CommandLine.Option] = [
    .init("daemon", value: "PATH", "Connect to identityd at this socket."),
    .init("version", "Show the version and exit."),
    .init("help", "Show this help and exit."),
  ]

  static var help: String {
    """
    identity-portal [OPTION…]

    Answers the Secret portal of a user's session with secrets that identityd keeps.

    \(CommandLine.help(known))
    See identity-portal(8).

    """
  }

  let daemon: String?
  let showsVersion: Bool
  let showsHelp: Bool

  init(_ arguments: [String]) throws(CommandLine.UsageError) {
    let line = try CommandLine(arguments, onlyOptions: Self.known, of: "identity-portal")
    daemon = line.options["daemon"]
    showsVersion = line.options["version"] != nil
    showsHelp = line.options["help"] != nil
  }
}
