import ConfigurationFiles
import FleetService
import FleetWire
import Glibc
import IdentityClient
import IdentityCore
import LinuxSystem
import Mosquitto
import Systemd

/// The program `identity-fleet`: reads options and configuration, and connects the service with the system.
enum FleetProgram {
  /// The exit statuses, as those of identityd. `identity-fleet(8)` lists them.
  private enum ExitStatus: Int32 {
    case success = 0
    /// Any failure not listed below. The log has the reason.
    case failure = 1
    /// The command line is wrong (EX_USAGE of sysexits.h).
    case usage = 64
    /// The configuration was refused (EX_CONFIG).
    case configuration = 78
  }

  private struct Failure: Error {
    let status: ExitStatus
    let reason: String
  }

  /// Runs the service until it stops.
  ///
  /// - Returns: the exit status of the process.
  static func main() -> Int32 {
    var log = ServiceLog(isJournal: Journal.isStandardError)
    do {
      try ProcessGuard.prepareService(receiving: [SIGTERM, SIGINT, SIGHUP])
      return try run(CommandLine.arguments, &log)
    } catch let failure as Failure {
      log.fail(failure.reason)
      ServiceManager.notify(["STATUS=\(failure.reason)"])
      return failure.status.rawValue
    } catch {
      log.fail("\(error)")
      return ExitStatus.failure.rawValue
    }
  }

  private static func run(_ arguments: [String], _ log: inout ServiceLog) throws -> Int32 {
    let options: Options
    do {
      options = try Options(arguments)
    } catch {
      throw Failure(status: .usage, reason: "\(error); see 'identity-fleet --help'")
    }
    if options.showsHelp || options.showsVersion {
      StandardStream.output.write(options.showsHelp ? Options.help : "identity-fleet \(Version.program)\n")
      return ExitStatus.success.rawValue
    }
    log.isOwn = DaemonSocket(options.daemon).isOwn
    let configuration: FleetConfiguration
    let credentials: Credentials
    do {
      configuration = try load(options, log)
      credentials = try Credentials(folder: Environment["CREDENTIALS_DIRECTORY"])
    } catch {
      throw Failure(status: .configuration, reason: "configuration refused: \(error)")
    }
    let adminGroup = try adminGroup(configuration)
    if options.checksConfiguration { return ExitStatus.success.rawValue }
    return try serve(options, configuration, credentials, adminGroup: adminGroup, log)
  }

  private static func load(_ options: Options, _ log: ServiceLog) throws(ConfigurationFailure) -> FleetConfiguration {
    let etc = Environment["CONFIGURATION_DIRECTORY"]?.split(separator: ":").map(String.init) ?? ["/etc/identityd"]
    let loaded = try FleetConfiguration.load(
      file: options.configurationFile,
      folders: etc + ["/run/identityd", "/usr/local/lib/identityd", "/usr/lib/identityd"])
    for warning in loaded.warnings { log.warn(warning) }
    return loaded.configuration
  }

  private static func adminGroup(_ configuration: FleetConfiguration) throws -> UInt32? {
    guard let name = configuration.adminGroup else { return nil }
    guard let number = try Accounts.groupID(named: name) else {
      throw Failure(status: .configuration, reason: "AdminGroup=\(name): there is no such group")
    }
    return number
  }

  private static func serve(
    _ options: Options, _ configuration: FleetConfiguration, _ credentials: Credentials, adminGroup: UInt32?,
    _ log: ServiceLog
  ) throws -> Int32 {
    let loop = try EventLoop()
    var entropy = Entropy()
    let run = Run(high: try entropy.next(), low: try entropy.next())
    let settings = ServiceSettings(
      daemon: DaemonSocket(options.daemon), run: run, configuration: configuration, credentials: credentials, log: log)
    let service = try ServiceThread(loop, settings) { notice in
      switch notice {
      case .ready: ServiceManager.notify(["READY=1"])
      case .alive: ServiceManager.notify(["WATCHDOG=1"])
      case .ended(nil): loop.exit(status: ExitStatus.success.rawValue)
      case .ended(let reason?):
        log.fail(reason)
        ServiceManager.notify(["STATUS=\(reason)"])
        loop.exit(status: ExitStatus.failure.rawValue)
      }
    }
    let runtime = Environment["RUNTIME_DIRECTORY"]?.split(separator: ":").first.map(String.init)
    let control = try ControlSocket(
      loop, path: options.socket ?? "\(runtime ?? "/run/identity-fleet")/identity-fleet.sock",
      adminGroup: adminGroup, service)
    var sources: [EventSource] = []
    for signal in [SIGTERM, SIGINT] {
      sources.append(
        try loop.watch(signal: signal) {
          ServiceManager.notify(["STOPPING=1"])
          service.stop()
          control.close()
        })
    }
    sources.append(
      try loop.watch(signal: SIGHUP) {
        ServiceManager.notify(["RELOADING=1", "MONOTONIC_USEC=\(Clock.monotonicMicroseconds)"])
        do {
          let configuration = try load(options, log)
          control.adminGroup = try self.adminGroup(configuration)
          service.use(configuration)
        } catch {
          let reason = (error as? Failure)?.reason ?? "\(error)"
          log.warn("configuration refused, the previous one stays in force: \(reason)")
          ServiceManager.notify(["READY=1"])
        }
      })
    let watchdog = try ServiceManager.watchdogMicroseconds().map {
      try Watchdog(loop, interval: $0) { service.sendHeartbeat() }
    }
    let status = try withExtendedLifetime((service, control, sources, watchdog)) { try loop.run() }
    service.join()
    BrokerConnection.waitForEnds()
    return status
  }
}

/// The heartbeats for the service manager's watchdog, three in each interval. Each is a sign of life of this loop and, once
/// it is returned, of the service's.
private final class Watchdog {
  private var timer: EventSource?

  init(_ loop: EventLoop, interval: UInt64, beat: @escaping () -> Void) throws(SystemdError) {
    timer = try loop.timer(after: 0) { [unowned self] in
      beat()
      timer?.arm(after: interval / 3)
    }
  }
}
