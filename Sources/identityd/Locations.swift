import LinuxSystem

/// The paths and modes of the daemon's files: from the command line, else the service manager, else the user
/// it runs as.
struct Locations {
  /// The folder for all state.
  let stateDirectory: String
  /// The path of the socket if none is passed by the service manager. Nil if no default exists.
  let socket: String?
  /// Whether the socket is that of a user's own daemon, which `identityctl` reaches with `--user`.
  let isOwn: Bool
  /// The mode of the socket: a system daemon lets every user connect, and a user's own daemon only that user.
  let socketMode: UInt32
  /// The mode of the socket's folder, if it has to be created.
  let runtimeDirectoryMode: UInt32
  /// The folders for configuration files, highest priority first.
  let configurationFolders: [String]

  /// Determines the paths from the options and the environment.
  ///
  /// - Throws: a usage error that names the missing variables, for a user without a home.
  init(_ options: Options) throws(CommandLine.UsageError) {
    let isSystem = Accounts.ownUserID == 0 || Environment["STATE_DIRECTORY"] != nil
    socketMode = isSystem ? 0o666 : 0o600
    runtimeDirectoryMode = isSystem ? 0o755 : 0o700
    configurationFolders = Self.configurationFolders(isSystem: isSystem)
    let ownSocket = Environment["XDG_RUNTIME_DIR"].map { "\($0)/identityd/identityd.sock" }
    if let given = options.socket {
      socket = given
    } else if let runtime = Self.first("RUNTIME_DIRECTORY") {
      socket = "\(runtime)/identityd.sock"
    } else if isSystem {
      socket = "/run/identityd/identityd.sock"
    } else {
      socket = ownSocket
    }
    isOwn = socket != nil && socket == ownSocket
    if let given = options.stateDirectory ?? Self.first("STATE_DIRECTORY") {
      stateDirectory = given
    } else if isSystem {
      stateDirectory = "/var/lib/identityd"
    } else if let base = Environment["XDG_STATE_HOME"] ?? Environment["HOME"].map({ "\($0)/.local/state" }) {
      stateDirectory = "\(base)/identityd"
    } else {
      throw CommandLine.UsageError("neither XDG_STATE_HOME nor HOME is set; give --state-directory")
    }
  }

  /// The order of systemd.syntax(7), with a user's own folder before all others.
  private static func configurationFolders(isSystem: Bool) -> [String] {
    let own = isSystem ? nil : (Environment["XDG_CONFIG_HOME"] ?? Environment["HOME"].map { "\($0)/.config" })
    let etc = Environment["CONFIGURATION_DIRECTORY"]?.split(separator: ":").map(String.init) ?? ["/etc/identityd"]
    return (own.map { ["\($0)/identityd"] } ?? []) + etc
      + ["/run/identityd", "/usr/local/lib/identityd", "/usr/lib/identityd"]
  }

  /// The first folder in a variable of the service manager, which joins them with colons (systemd.exec(5)).
  private static func first(_ variable: String) -> String? {
    Environment[variable]?.split(separator: ":").first.map(String.init)
  }
}
