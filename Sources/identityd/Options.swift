import IdentityCore
import IdentityServer
import LinuxSystem

/// The command line of `identityd`.
struct Options {
  static let known: [CommandLine.Option] = [
    .init("config", value: "FILE", "Read only this configuration file."),
    .init("state-directory", value: "DIR", "Keep all state in this directory."),
    .init("socket", value: "PATH", "Listen on this path."),
    .init("log-level", value: "LEVEL", "Log entries of at least this level: err, warning, notice, info, debug."),
    .init("check-config", "Check the configuration, report its errors, and exit."),
    .init("version", "Show the version and exit."),
    .init("help", "Show this help and exit."),
  ]

  static var help: String {
    """
    identityd [OPTION…]

    Keeps the identifiers of this device and its apps, and their secrets, and serves them over a Unix socket.

    \(CommandLine.help(known))
    See identityd(8), identityd.conf(5) and identityd-protocol(7).

    """
  }

  let configurationFile: String?
  let stateDirectory: String?
  let socket: String?
  let logLevel: LogLevel?
  let checksConfiguration: Bool
  let showsVersion: Bool
  let showsHelp: Bool

  init(_ arguments: [String]) throws(CommandLine.UsageError) {
    let line = try CommandLine(arguments, onlyOptions: Self.known, of: "identityd")
    configurationFile = line.options["config"]
    stateDirectory = line.options["state-directory"]
    socket = line.options["socket"]
    checksConfiguration = line.options["check-config"] != nil
    showsVersion = line.options["version"] != nil
    showsHelp = line.options["help"] != nil
    guard let level = line.options["log-level"] else {
      logLevel = nil
      return
    }
    guard let known = LogLevel(name: level) else {
      throw CommandLine.UsageError("--log-level cannot be '\(level)'; allowed: err, warning, notice, info, debug")
    }
    logLevel = known
  }
}
