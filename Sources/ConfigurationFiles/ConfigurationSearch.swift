import LinuxSystem

/// Finds configuration as systemd does (systemd-system.conf(5), "configuration directories and precedence").
///
/// Of the main file the first folder's counts. Drop-ins `NAME.d/*.conf` of all folders come after it, in the order of
/// their names; of two with one name the earlier folder's counts, and a link to /dev/null masks the others.
package struct ConfigurationSearch: Equatable, Sendable {
  /// The name of the main file: `identityd.conf`.
  package let name: String
  /// The folders, most important first.
  package let folders: [String]

  /// Names what is looked for, and where.
  package init(name: String, folders: [String]) {
    self.name = name
    self.folders = folders
  }

  /// Everything that is set, least important first, so that the last word on a setting is its value.
  ///
  /// - Parameter limit: the longest file that is read, in bytes.
  /// - Throws: the file that could not be read or parsed. One that is not there is no failure.
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

  /// The settings of one file: nil where it is not there, none where it is masked.
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
      // Editors leave hidden files behind; systemd passes them over too.
      for name in names where name.utf8.first != UInt8(ascii: ".") && name.utf8.suffix(5).elementsEqual(".conf".utf8) {
        if !paths.contains(where: { $0.name == name }) { paths.append((name, "\(path)/\(name)")) }
      }
    }
    return paths.sorted { Array($0.name.utf8).lexicographicallyPrecedes(Array($1.name.utf8)) }.map(\.path)
  }
}
