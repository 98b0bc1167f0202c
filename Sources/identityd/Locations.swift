import LinuxSystem

/// Where this process finds and keeps things: as the command line says, else the service manager, else by who runs it.
struct Locations {
  /// The folder with all state.
  let stateDirectory: String
  /// The path of the socket, where none is handed over.
  let socket: String?
  /// Who may connect: everybody on a system's socket, only the user on a user's own.
  let socketMode: UInt32
  /// The mode of the folder around the socket, where it has to be made.
  let runtimeDirectoryMode: UInt32
  /// The folders with configuration, most important first.
  let configurationFolders: [String]

  /// Works it out.
  ///
  /// - Throws: which variable is missing, for a user without a home.
  init(_ options: Options) throws(CommandLine.UsageError) {
    let isSystem = Accounts.ownUserID == 0 || Environment["STATE_DIRECTORY"] != nil
    socketMode = isSystem ? 0o666 : 0o600
    runtimeDirectoryMode = isSystem ? 0o755 : 0o700
    configurationFolders = Self.configurationFolders(isSystem: isSystem)
    if let given = options.socket {
      socket = given
    } else if let runtime = Self.first("RUNTIME_DIRECTORY") {
      socket = "\(runtime)/identityd.sock"
    } else if isSystem {
      socket = "/run/identityd/identityd.sock"
    } else {
      socket = Environment["XDG_RUNTIME_DIR"].map { "\($0)/identityd/identityd.sock" }
    }
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

  /// systemd's order (systemd.syntax(7)); a user's own folder comes before all.
  private static func configurationFolders(isSystem: Bool) -> [String] {
    let own = isSystem ? nil : (Environment["XDG_CONFIG_HOME"] ?? Environment["HOME"].map { "\($0)/.config" })
    let etc = Environment["CONFIGURATION_DIRECTORY"]?.split(separator: ":").map(String.init) ?? ["/etc/identityd"]
    return (own.map { ["\($0)/identityd"] } ?? []) + etc
      + ["/run/identityd", "/usr/local/lib/identityd", "/usr/lib/identityd"]
  }

  /// The first of the folders that the service manager names (systemd.exec(5): they are joined by colons).
  private static func first(_ variable: String) -> String? {
    Environment[variable]?.split(separator: ":").first.map(String.init)
  }
}
