import AppManifests
import ConfigurationFiles
import IdentityCore
import IdentityServer
import IdentityStore
import LinuxSystem
import Systemd

/// The daemon's readings of the machine, its users and its manifests.
enum MachineSources {
  /// The application ID from which the device identifier is derived. It must never change: every machine would get
  /// another device identifier.
  private static let application: (high: UInt64, low: UInt64) = (0x2b7e_4d0c_91a3_4f58, 0xa6d2_03b9_5ec8_174f)

  /// The inputs of the writer. The rules do no I/O of their own.
  static var writer: WriterSources {
    WriterSources(
      machine: {
        do throws(MachineIdentity.Failure) {
          let (high, low) = try MachineIdentity.derived(for: application)
          return .known(UUID(high: high, low: low))
        } catch {
          return .unknown("\(error)")
        }
      },
      manifests: { ManifestReader.survey($0) },
      userIDs: { ManifestReader.userIDs(of: $0) },
      files: [SubordinateUserReader.path, Accounts.file], subordinates: { SubordinateUserReader.read(owners: $0) },
      system: { system }, provision: { try provision() })
  }

  /// The operating system that runs, according to its os-release file.
  private static var system: WriterSources.System {
    do {
      guard let found = try OSRelease() else { return .unknown("there is no os-release file") }
      return try system(found)
    } catch {
      return .unknown("\(error)")
    }
  }

  /// Returns the version of a system, and its build if it has one (identityd-protocol(7), section "The system").
  private static func system(_ found: OSRelease) throws -> WriterSources.System {
    func text(_ name: String) throws(OSRelease.Fault) -> Text? {
      try found.value(of: name, limit: Bound.nameLength).map { Text($0) }
    }
    let (id, versionID) = (try text("ID"), try text("VERSION_ID"))
    // The version of an image tells more than the build that it was first installed from.
    let build = try text("IMAGE_VERSION") ?? text("OSTREE_VERSION") ?? text("BUILD_ID")
    let version = try versionID ?? build ?? text("VERSION_CODENAME") ?? (id == "debian" ? debianVersion : nil)
    if version == nil, id == nil { return .unknown("os-release names neither a system nor a version") }
    // os-release(5) gives "linux" as the default of ID.
    return .known(
      Release(distribution: id ?? "linux", version: version ?? "rolling", build: versionID == nil ? nil : build))
  }

  /// The text by which Debian's package base-files tells testing and unstable from releases, such as `trixie/sid`.
  private static var debianVersion: Text? {
    get throws(SystemError) {
      guard
        case .bytes(let content) = try ConfigurationAccess.read(path: "/etc/debian_version", limit: Bound.nameLength)
      else { return nil }
      let line = content.prefix { $0 != UInt8(ascii: "\n") }
      return line.isEmpty ? nil : Text(validating: Array(line))
    }
  }

  /// The marks that tell this machine from others: its machine-id and the hardware UUID of its firmware.
  ///
  /// Only root may read /sys/class/dmi/id/product_uuid, so the unit has systemd pass it as a credential.
  static var marks: MachineMarks {
    MachineMarks(machineID: try? MachineIdentity.machineID(), hardware: hardware)
  }

  /// The master keys that the service manager passes as credentials.
  static var keys: KeyCredentials {
    KeyCredentials(current: credential("identityd.key"), previous: credential("identityd.key.previous"))
  }

  /// The identity that the service manager passes as credentials, for a first start.
  private static func provision() throws -> Provision {
    var provision = Provision()
    provision.device = try given("identityd.device", limit: Bound.fileLength)
    provision.items = try given("identityd.items", limit: Bound.backupLength)
    let passphrase = credentialPath("identityd.items-passphrase")
    provision.passphraseFile = try passphrase.flatMap { try PathStatus.of($0) == nil ? nil : $0 }
    return provision
  }

  /// Reads a credential; nil if there is none.
  private static func given(_ name: String, limit: Int) throws -> [UInt8]? {
    guard let path = credentialPath(name),
      case .bytes(let content) = try ConfigurationAccess.read(path: path, limit: limit)
    else { return nil }
    return content
  }

  private static func credential(_ name: String) -> [UInt8]? {
    (try? given(name, limit: Bound.fileLength)) ?? nil
  }

  /// The path of a credential from systemd (systemd.exec(5)).
  private static func credentialPath(_ name: String) -> String? {
    Environment["CREDENTIALS_DIRECTORY"].map { "\($0)/\(name)" }
  }

  private static var hardware: [UInt8]? {
    for path in [credentialPath("identityd.hardware"), "/sys/class/dmi/id/product_uuid"] {
      guard let path, case .bytes(let content)? = try? ConfigurationAccess.read(path: path, limit: 256) else {
        continue
      }
      let text = content.filter { $0 > 0x20 }
      guard let uuid = UUID(Text(trusted: text)) else { continue }
      return uuid.isFirmwareFiller ? nil : uuid.bytes
    }
    return nil
  }
}
