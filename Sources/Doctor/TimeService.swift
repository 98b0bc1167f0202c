import LinuxSystem

/// The service that can keep the clock synchronized, as systemd-timedated.service(8) finds it.
enum TimeService: Equatable, Sendable {
  /// A time service can be switched on.
  case installed
  /// The unit of the only time service is masked.
  case masked(unit: String)
  /// There is no time service, and this command installs one; nil if the package manager is unknown.
  case missing(install: [String]?)

  /// The lack of a time service, as the end of a sentence; empty if there is one.
  var lack: String {
    switch self {
    case .installed: ""
    case .masked(let unit): ", and \(unit) is masked"
    case .missing: ", and no time service is installed; install one, such as systemd-timesyncd or chrony"
    }
  }

  /// The commands that let a time service set the clock.
  var mend: [Remedy] {
    let start = Remedy.root("timedatectl", "set-ntp", "true")
    switch self {
    case .installed: return [start]
    case .masked(let unit): return [.root("systemctl", "unmask", unit), start]
    case .missing(let install): return install.map { [.command(asRoot: true, $0)] } ?? []
    }
  }
}

extension TimeService {
  /// The folders of lists of time services, and those of units, each in the order of precedence.
  private static let listFolders = ["/etc", "/run", "/usr/local/lib", "/usr/lib"].map { "\($0)/systemd/ntp-units.d" }
  private static let unitFolders = ["/etc", "/run", "/usr/local/lib", "/usr/lib"].map { "\($0)/systemd/system" }

  /// The package managers, each with its program and the command that installs a time service. Distributions with
  /// apt-get ship systemd-timesyncd as a package; the others recommend chrony.
  private static let packageManagers = [
    ("/usr/bin/apt-get", ["apt-get", "install", "systemd-timesyncd"]), ("/usr/bin/dnf", ["dnf", "install", "chrony"]),
    ("/usr/bin/zypper", ["zypper", "install", "chrony"]),
  ]

  /// The time service of this machine.
  static var present: TimeService {
    var masked: String?
    for unit in units {
      switch file(of: unit) {
      case .bytes: return .installed
      case .masked: masked = masked ?? unit
      case .missing: break
      }
    }
    if let masked { return .masked(unit: masked) }
    return .missing(install: packageManagers.first { ((try? PathStatus.of($0.0)) ?? nil) != nil }?.1)
  }

  /// The units of all lists: a line each, and comments.
  private static var units: [String] {
    listFolders.flatMap { folder -> [String] in
      let names = (try? ConfigurationAccess.names(in: folder)) ?? nil
      return (names ?? []).filter { $0.hasSuffix(".list") }.flatMap { name -> [String] in
        guard case .bytes(let bytes)? = try? ConfigurationAccess.read(path: "\(folder)/\(name)", limit: 65_536) else {
          return []
        }
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
          .filter { !$0.hasPrefix("#") && !$0.contains("/") }
      }
    }
  }

  /// Returns the unit file that systemd uses, or `missing`.
  private static func file(of unit: String) -> ConfigurationAccess.Content {
    for folder in unitFolders {
      let content = (try? ConfigurationAccess.read(path: "\(folder)/\(unit)", limit: 65_536)) ?? .missing
      if content != .missing { return content }
    }
    return .missing
  }
}
