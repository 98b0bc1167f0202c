import LinuxSystem

/// Finds configuration files as systemd does (systemd-system.conf(5), "configuration directories and precedence").
///
/// Only the first main file found in the folders is read. The drop-ins `NAME.d/*.conf` of all folders follow, in the
/// order of their names. If several folders have a drop-in of one name, only the drop-in in the first of these folders
/// is read. A link to /dev/null there masks the others.
package struct ConfigurationSearch: Equatable, Sendable {
  /// The name of the main file, such as `identityd.conf`.
  package let name: String
  /// The folders, in descending order of precedence.
  package let folders: [String]

  package init(name: String, folders: [String]) {
    self.name = name
    self.folders = folders
  }

  /// Returns all settings in ascending order of precedence, so that the last one of a name is in force.
  ///
  /// - Parameter limit: The maximum length of a file in bytes.
  /// - Throws: A failure that names the file that cannot be read or parsed. A missing file is not a failure.
  package func settings(limit: Int) throws(ConfigurationFailure) -> [Setting] {
    var settings: [Setting] = []
    for folder in folders {
      let path = "\(folder)/\(name)"
      guard let found = try Self.settings(ofFile: path, limit: limit) else { continue }
      settings += found
      break
    }
    for path in try dropIns() { settings += try Self.settings(ofFile: path, limit: limit) ?? [] }
    return settings
  }

  /// Returns the settings of one file: nil if the file is missing, none if it is masked.
  ///
  /// - Parameter limit: The maximum length of the file in bytes.
  /// - Throws: A failure that names the file if it cannot be read or parsed.
  package static func settings(ofFile path: String, limit: Int) throws(ConfigurationFailure) -> [Setting]? {
    do {
      switch try ConfigurationAccess.read(path: path, limit: limit) {
      case .missing: return nil
      case .masked: return []
      case .bytes(let content): return try INIFile.parse(content, file: path)
      }
    } catch let failure as ConfigurationFailure {
      throw failure
    } catch {
      throw ConfigurationFailure(place: path, reason: "\(error)")
    }
  }

  private func dropIns() throws(ConfigurationFailure) -> [String] {
    var paths: [(name: String, path: String)] = []
    for folder in folders {
      let path = "\(folder)/\(name).d"
      let names: [String]
      do {
        names = try ConfigurationAccess.names(in: path) ?? []
      } catch {
        throw ConfigurationFailure(place: path, reason: "\(error)")
      }
      // Hidden files are skipped, because editors leave some behind. systemd skips them too.
      for name in names where name.utf8.first != UInt8(ascii: ".") && name.utf8.suffix(5).elementsEqual(".conf".utf8) {
        if !paths.contains(where: { $0.name == name }) { paths.append((name, "\(path)/\(name)")) }
      }
    }
    return paths.sorted { Array($0.name.utf8).lexicographicallyPrecedes(Array($1.name.utf8)) }.map(\.path)
  }
}
