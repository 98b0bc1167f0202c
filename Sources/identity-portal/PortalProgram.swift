import Glibc
import IdentityClient
import IdentityCore
import LinuxSystem
import Systemd

/// The program `identity-portal`: reads options, and connects the message bus with identityd.
enum PortalProgram {
  /// The exit statuses. `identity-portal(8)` lists them.
  private enum ExitStatus: Int32 {
    case success = 0
    /// Any failure not listed below. The log has the reason.
    case failure = 1
    /// The command line is wrong (EX_USAGE of sysexits.h).
    case usage = 64
  }

  /// The well-known name of the backend. The portal starts the service by this name.
  private static let busName = "org.freedesktop.impl.portal.desktop.identity"
  /// Microseconds without a call after which the process ends.
  private static let idle: UInt64 = 60_000_000

  /// Serves until no app has asked for some time.
  ///
  /// - Returns: the exit status of the process.
  static func main() -> Int32 {
    do {
      let options = try Options(CommandLine.arguments)
      if options.showsHelp || options.showsVersion {
        StandardStream.output.write(options.showsHelp ? Options.help : "identity-portal \(Version.program)\n")
        return ExitStatus.success.rawValue
      }
      try ProcessGuard.prepareService(receiving: [])
      try serve(options)
      return ExitStatus.success.rawValue
    } catch let error as CommandLine.UsageError {
      return end(.usage, "\(error); see 'identity-portal --help'")
    } catch {
      return end(.failure, "\(error)")
    }
  }

  private static func serve(_ options: Options) throws {
    // Not the client's own choice, which depends on the daemons that run: another daemon has other secrets.
    let secrets = AppSecrets(daemon: options.daemon ?? DaemonSocket.systemPath)
    let bus = try SecretPortalBus { appID, descriptor in
      do {
        try secrets.deliver(to: appID, into: descriptor)
        return true
      } catch {
        StandardStream.error.write("<4>identity-portal: no secret for an app: \(error)\n")
        return false
      }
    }
    try bus.serve(as: busName, untilIdleFor: idle)
  }

  private static func end(_ status: ExitStatus, _ reason: String) -> Int32 {
    StandardStream.error.write("<3>identity-portal: \(reason)\n")
    return status.rawValue
  }
}
