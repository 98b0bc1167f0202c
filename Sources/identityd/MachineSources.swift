import AppManifests
import ConfigurationFiles
import IdentityCore
import IdentityServer
import IdentityStore
import LinuxSystem
import Systemd

/// What the daemon learns of the machine under it, and of its users and manifests.
enum MachineSources {
  /// The application ID that the device identifier is derived for. It is identityd's for good: another would give every
  /// machine another identifier.
  private static let application: (high: UInt64, low: UInt64) = (0x2b7e_4d0c_91a3_4f58, 0xa6d2_03b9_5ec8_174f)

  /// Where the writer gets what the rules must not read by themselves.
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
      files: [SubordinateUserReader.path], subordinates: { SubordinateUserReader.read(owners: $0) },
      system: { system })
  }

  /// Which system runs, by its own word.
  private static var system: WriterSources.System {
    do {
      guard let found = try OSRelease() else { return .unknown("there is no os-release file") }
      return system(found)
    } catch {
      return .unknown("\(error)")
    }
  }

  /// The version of a system, and its build where it has such: an image's version tells more than the build it was once
  /// installed from. A system that has no version is known by its build alone.
  static func system(_ found: OSRelease) -> WriterSources.System {
    func text(_ name: String) -> Text? {
      guard let value = found[name], value.count <= Bound.nameLength else { return nil }
      return Text(validating: value)
    }
    let build = text("IMAGE_VERSION") ?? text("BUILD_ID")
    let versionID = text("VERSION_ID")
    guard let version = versionID ?? build else {
      return .unknown("os-release has neither VERSION_ID nor IMAGE_VERSION nor BUILD_ID")
    }
    // "linux" is what os-release(5) has for a system without a name.
    return .known(
      Release(distribution: text("ID") ?? "linux", version: version, build: versionID == nil ? nil : build))
  }

  /// What tells this machine from others: its machine-id, and the hardware's UUID as the firmware has it
  /// (/sys/class/dmi/id/product_uuid, which only root may read: the unit has it handed over as a credential).
  static var marks: MachineMarks {
    MachineMarks(machineID: try? MachineIdentity.machineID(), hardware: hardware)
  }

  /// Master keys that the service manager hands over.
  static var keys: KeyCredentials {
    KeyCredentials(current: credential("identityd.key"), previous: credential("identityd.key.previous"))
  }

  private static func credential(_ name: String) -> [UInt8]? {
    guard let path = credentialPath(name),
      case .bytes(let content)? = try? ConfigurationAccess.read(path: path, limit: Bound.fileLength)
    else { return nil }
    return content
  }

  /// Where systemd puts a credential (systemd.exec(5)).
  private static func credentialPath(_ name: String) -> String? {
    Environment["CREDENTIALS_DIRECTORY"].map { "\($0)/\(name)" }
  }

  private static var hardware: [UInt8]? {
    for path in [credentialPath("identityd.hardware"), "/sys/class/dmi/id/product_uuid"] {
      guard let path, case .bytes(let content)? = try? ConfigurationAccess.read(path: path, limit: 256) else {
        continue
      }
      let text = content.filter { $0 > 0x20 }
      // Firmware that does not know says zeros or ones.
      guard let uuid = UUID(Text(trusted: text)), !uuid.isPlaceholder else { continue }
      return uuid.bytes
    }
    return nil
  }
}
