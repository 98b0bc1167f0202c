import ConfigurationFiles
import Glibc
import IdentityCore
import IdentityServer
import IdentityStore
import LinuxSystem
import Systemd

/// The program `identityd`: reads options and configuration, and connects the parts of the daemon.
enum Daemon {
  /// A failed start: the reason to log and the exit status.
  private struct Failure: Error {
    let status: ExitStatus
    let reason: String
  }

  /// Runs the daemon until it stops.
  ///
  /// - Returns: the exit status of the process.
  static func main() -> Int32 {
    let output = LogOutput()
    defer { output.finish() }
    do {
      try ProcessGuard.prepareService(receiving: [SIGTERM, SIGINT, SIGHUP])
      return try run(CommandLine.arguments, output)
    } catch let failure as Failure {
      return refuse(failure, output)
    } catch {
      return refuse(Failure(status: .failure, reason: "\(error)"), output)
    }
  }

  private static func refuse(_ failure: Failure, _ output: LogOutput) -> Int32 {
    output.refuse(LogEvent.startRefused(failure.reason).entry)
    ServiceManager.notify(["STATUS=\(LogText.line(failure.reason))"])
    return failure.status.rawValue
  }

  private static func run(_ arguments: [String], _ output: LogOutput) throws -> Int32 {
    let options: Options
    let locations: Locations
    do {
      options = try Options(arguments)
      if options.showsHelp { return show(Options.help) }
      if options.showsVersion { return show("identityd \(Version.program)\n") }
      locations = try Locations(options)
    } catch {
      throw Failure(status: .usage, reason: "\(error); see 'identityd --help'")
    }
    let loaded: Configuration.Loaded
    let settings: ServerSettings
    do {
      (loaded, settings) = try configuration(options, locations)
    } catch {
      throw Failure(status: .configuration, reason: "configuration refused: \(error)")
    }
    if options.checksConfiguration {
      for warning in loaded.warnings { StandardStream.error.write("identityd: warning: \(LogText.line(warning))\n") }
      return ExitStatus.success.rawValue
    }
    return try serve(options, locations, loaded, settings, output)
  }

  private static func show(_ text: String) -> Int32 {
    StandardStream.output.write(text)
    return ExitStatus.success.rawValue
  }

  private static func configuration(
    _ options: Options, _ locations: Locations
  ) throws(ConfigurationFailure) -> (Configuration.Loaded, ServerSettings) {
    let loaded = try Configuration.load(file: options.configurationFile, folders: locations.configurationFolders)
    let (settings, warnings) = try loaded.configuration.serverSettings()
    return (Configuration.Loaded(configuration: loaded.configuration, warnings: loaded.warnings + warnings), settings)
  }

  // MARK: Serve

  private static func serve(
    _ options: Options, _ locations: Locations, _ loaded: Configuration.Loaded, _ settings: ServerSettings,
    _ output: LogOutput
  ) throws -> Int32 {
    output.level = options.logLevel ?? loaded.configuration.logLevel
    output.isOwn = locations.isOwn
    try output.start()
    for warning in loaded.warnings { output.write(LogEvent.configurationWarning(warning).entry) }
    let directory = try stateDirectory(locations.stateDirectory)
    let handed = try ServiceManager.listeningDescriptors()
    let socket = try listen(options, locations, handed.filter { !Kept.isName($0.name) })
    // Only after the socket is created: other users have to enter its folder.
    ProcessGuard.restrictNewFiles()
    let store = try open(directory, loaded.configuration.store)
    let kept = ServiceManager.hasDescriptorStore == false ? nil : handed.filter { Kept.isName($0.name) }
    let server = try Server(
      store: store, listener: socket.descriptor, socketPath: socket.path, kept: kept, sources: MachineSources.writer,
      loop: try EventLoop(), settings: settings,
      // A service manager that owns the socket starts the daemon at the latest for the next client.
      restartStatus: socket.made == nil ? ExitStatus.restart.rawValue : nil,
      log: { output.write($0) }, logBacklog: { output.backlog },
      reload: { () throws(ConfigurationRefusal) in try reload(options, locations, output) })
    try server.start()
    let status = try server.run()
    UnixSocket.remove(socket.path, ifStill: socket.made)
    return status
  }

  private static func stateDirectory(_ path: String) throws(Failure) -> StateDirectory {
    do {
      return try StateDirectory.open(path: path)
    } catch {
      if case .held = error { throw Failure(status: .stateHeld, reason: "\(error)") }
      throw Failure(status: .stateUnusable, reason: "\(error)")
    }
  }

  private static func open(_ directory: consuming StateDirectory, _ options: Store.Options) throws -> Store {
    do {
      var entropy = Entropy()
      let identity = UUID(high: try entropy.next(), low: try entropy.next()).stamped(version: 4)
      return try Store.open(
        directory, options: options, now: Timestamp(milliseconds: Clock.realtimeMilliseconds), identity: identity,
        machine: MachineSources.marks, credentials: MachineSources.keys)
    } catch let failure as StoreFailure {
      let status: ExitStatus =
        switch failure {
        case .newer, .unreleased: .storeOfOtherVersion
        case .unusable: .stateUnusable
        }
      throw Failure(status: status, reason: "\(failure)")
    }
  }

  private static func listen(
    _ options: Options, _ locations: Locations, _ handed: [(number: Int32, name: String)]
  ) throws(Failure) -> ListeningSocket {
    do {
      if options.socket == nil, let socket = try ListeningSocket.handedOver(handed, path: locations.socket) {
        return socket
      }
      guard let path = locations.socket else {
        throw Failure(status: .usage, reason: "XDG_RUNTIME_DIR is not set; give --socket")
      }
      return try ListeningSocket.make(path, locations)
    } catch let failure as Failure {
      throw failure
    } catch let failure as UnixSocket.ListenFailure {
      if case .system = failure { throw Failure(status: .failure, reason: "\(failure)") }
      throw Failure(status: .socketTaken, reason: "\(failure)")
    } catch {
      throw Failure(status: .failure, reason: "\(error)")
    }
  }

  private static func reload(
    _ options: Options, _ locations: Locations, _ output: LogOutput
  ) throws(ConfigurationRefusal) -> ServerSettings {
    do {
      let (loaded, settings) = try configuration(options, locations)
      for warning in loaded.warnings { output.write(LogEvent.configurationWarning(warning).entry) }
      output.level = options.logLevel ?? loaded.configuration.logLevel
      return settings
    } catch {
      throw ConfigurationRefusal(reason: "\(error)")
    }
  }
}
