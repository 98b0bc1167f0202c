import ConfigurationFiles
import IdentityCore
import IdentityServer
import IdentityStore
import LinuxSystem

/// The settings of `identityd.conf`.
struct Configuration: Equatable {
  var onMachineChange = MachinePolicy.renew
  var onHardwareChange = MachinePolicy.keep
  /// Empty for the default directories.
  var appDirectories: [String] = []
  /// 0 for never.
  var forgetUnusedDays = 0
  /// 0 for never.
  var forgetSuspendedDays = 30
  var adminGroup: String?
  /// Nil for no group.
  var monitorGroup: String? = usualMonitorGroup
  var containers = ContainerPolicy.own
  var missingCredential = MissingCredential.fail
  var proofs = ProofSettings()
  /// In seconds.
  var proofOverlap = 3_600
  var limits = Limits()
  var pollMicroseconds = 0
  var store = Store.Options()
  var logLevel = LogLevel.info

  private static let usualAppDirectories = [
    "/etc/identityd/apps.d", "/run/identityd/apps.d", "/usr/local/lib/identityd/apps.d", "/usr/lib/identityd/apps.d",
  ]

  /// The packages create this group. A manual installation may lack it, which is not a fault.
  private static let usualMonitorGroup = "identityd-monitor"

  typealias Loaded = LoadedConfiguration<Configuration>

  /// Reads the configuration.
  ///
  /// - Parameter file: the only file to read, which must exist. Nil to search `folders`.
  /// - Throws: the first value that is not allowed, with its file, its line and the allowed values. No setting takes
  ///   effect then.
  static func load(file: String?, folders: [String]) throws(ConfigurationFailure) -> Loaded {
    let search = ConfigurationSearch(name: "identityd.conf", folders: folders)
    let loaded = try Loaded(search, file: file, limit: Bound.fileLength)
    let configuration = loaded.configuration
    let connections = configuration.limits.connections
    if connections.reserved >= connections.total {
      throw ConfigurationFailure(
        place: "[Limits]",
        reason: "Connections= must be greater than the \(connections.reserved) reserved for root"
      )
    }
    return loaded
  }

  /// Returns the settings for the loop, and warnings about doubtful ones.
  ///
  /// - Throws: if the group of admins does not exist, or if it or UID_MIN of login.defs cannot be read.
  func serverSettings() throws(ConfigurationFailure) -> (settings: ServerSettings, warnings: [String]) {
    var settings = ServerSettings()
    var warnings: [String] = []
    settings.limits = limits
    settings.pollMicroseconds = UInt64(pollMicroseconds)
    settings.appDirectories = appDirectories.isEmpty ? Self.usualAppDirectories : appDirectories
    settings.onMachineChange = onMachineChange
    settings.onHardwareChange = onHardwareChange
    settings.containers = containers
    settings.missingCredential = missingCredential
    settings.proofs = proofs
    settings.proofs.overlap = Int64(proofOverlap)
    settings.forgetting = ForgetPolicy(
      unusedDays: forgetUnusedDays == 0 ? nil : forgetUnusedDays,
      suspendedDays: forgetSuspendedDays == 0 ? nil : forgetSuspendedDays)
    do {
      settings.userRanges = UserRanges(firstRegular: try Accounts.firstRegularUser())
    } catch {
      throw ConfigurationFailure(place: "UID_MIN of login.defs", reason: "\(error)")
    }
    let isService = settings.userRanges.isForServices(Accounts.ownUserID)
    settings.proofs.owner = isService ? nil : Accounts.ownUserID
    settings.monitorGroup = monitors(&warnings)
    guard let adminGroup else { return (settings, warnings) }
    do {
      guard let number = try Accounts.groupID(named: adminGroup) else {
        throw ConfigurationFailure(place: "[Access] AdminGroup=\(adminGroup)", reason: "there is no such group")
      }
      settings.adminGroup = number
      return (settings, warnings)
    } catch let failure as ConfigurationFailure {
      throw failure
    } catch {
      throw ConfigurationFailure(place: "[Access] AdminGroup=\(adminGroup)", reason: "\(error)")
    }
  }

  /// Returns the ID of the monitors' group. A group that is missing or cannot be looked up has no members: the daemon
  /// must start for all other peers regardless.
  private func monitors(_ warnings: inout [String]) -> UInt32? {
    guard let monitorGroup else { return nil }
    do {
      let number = try Accounts.groupID(named: monitorGroup)
      if number == nil, monitorGroup != Self.usualMonitorGroup {
        warnings.append("[Access] MonitorGroup=\(monitorGroup): there is no such group; it has no members")
      }
      return number
    } catch {
      warnings.append("[Access] MonitorGroup=\(monitorGroup): \(error); it has no members until the next reload")
      return nil
    }
  }
}
