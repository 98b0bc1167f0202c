import ConfigurationFiles
import Glibc
package import IdentityCore
import LinuxSystem

/// Reads the manifests of apps: `<app id>.app`, one file an app, in the folders that they are installed in.
///
/// Of files with one name the most important folder's counts, good or not, and a link to /dev/null in its place means
/// that there is no such app (systemd-system.conf(5), "configuration directories and precedence").
package enum ManifestReader {
  /// Looks at every manifest.
  ///
  /// A file that cannot be used has an entry without a manifest, so that its app keeps what it had.
  ///
  /// - Parameter folders: most important first. One that is not there is empty.
  /// - Returns: what was found, without the users' numbers (see ``userIDs(of:)``), or why nothing may be concluded.
  package static func survey(_ folders: [String]) -> ManifestSurvey {
    let files: [(name: Text, path: String)]
    do {
      files = try Self.files(in: folders)
    } catch {
      return .unreadable("\(error)")
    }
    var entries: [Text: ManifestSurvey.Entry] = [:]
    var faults: [String] = []
    for (name, path) in files {
      let id = Text(trusted: Array(name.bytes.dropLast(suffix.count)))
      guard id.isManifestName else {
        if !isMasked(path) { faults.append("\(printable(path)): the name before .app has to be \(Text.manifestNames)") }
        continue
      }
      do {
        guard let settings = try settings(ofFile: path) else { continue }
        let manifest = try Manifest(of: id, settings, ignored: &faults)
        entries[id] = ManifestSurvey.Entry(file: path, manifest: manifest)
      } catch {
        faults.append("\(error)")
        entries[id] = ManifestSurvey.Entry(file: path, manifest: nil)
      }
    }
    return .found(entries, faults: faults)
  }

  /// What the name of a manifest ends with.
  private static let suffix = ".app".utf8

  /// The manifests that count, in the order of their names.
  ///
  /// Names are told apart by their bytes: as strings, `\u{212A}.app` would pass for `K.app`.
  ///
  /// - Throws: the folder that could not be read, or that holds one manifest too many.
  private static func files(in folders: [String]) throws(ConfigurationFailure) -> [(name: Text, path: String)] {
    var paths: [Text: String] = [:]
    for folder in folders {
      // Editors leave hidden files behind; systemd passes them over too.
      for name in try names(in: folder) where name.utf8.first != dot && name.utf8.suffix(4).elementsEqual(suffix) {
        let key = Text(name)
        if paths[key] == nil { paths[key] = "\(folder)/\(name)" }
        guard paths.count <= Bound.manifests else {
          throw ConfigurationFailure(place: folder, reason: "there are more than \(Bound.manifests) manifests")
        }
      }
    }
    return paths.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
  }

  private static let dot = UInt8(ascii: ".")

  /// The names in a folder; none where there is nothing at all.
  ///
  /// A file, or a link that leads nowhere, is something: whoever took it for an empty folder would uninstall the apps.
  private static func names(in folder: String) throws(ConfigurationFailure) -> [String] {
    do {
      if let names = try ConfigurationAccess.names(in: folder) { return names }
      var status = stat()
      try system("lstat \(folder)") { unsafe lstat(folder, &status) }
    } catch  where error.code == ENOENT {
      return []
    } catch {
      throw ConfigurationFailure(place: folder, reason: SystemError.text(of: error.code))
    }
    throw ConfigurationFailure(place: folder, reason: "this is not a folder")
  }

  /// The settings of one file; nil where it is masked.
  ///
  /// - Throws: why it cannot be used, and in which line.
  private static func settings(ofFile path: String) throws(ConfigurationFailure) -> [Setting]? {
    let content: ConfigurationAccess.Content
    do {
      content = try ConfigurationAccess.read(path: path, limit: Bound.fileLength)
    } catch {
      let reason =
        switch error.code {
        case EINVAL: "this is not a regular file"
        case EFBIG: "a manifest is at most \(Bound.fileLength) bytes"
        default: SystemError.text(of: error.code)
        }
      throw ConfigurationFailure(place: path, reason: reason)
    }
    switch content {
    case .masked: return nil
    case .missing: throw ConfigurationFailure(place: path, reason: "this link leads nowhere, or the file has just gone")
    case .bytes(let bytes):
      let settings = try INIFile.parse(bytes, file: path)
      // What a power cut or a write in place leaves for a moment must not pass for an app that changed its vendor.
      guard !settings.isEmpty else { throw ConfigurationFailure(place: path, reason: "it says nothing") }
      return settings
    }
  }

  private static func isMasked(_ path: String) -> Bool {
    (try? ConfigurationAccess.read(path: path, limit: 0)) == .masked
  }

  /// The path as it may stand in a line of a log: a file's name can hold anything but a slash.
  private static func printable(_ path: String) -> String {
    String(decoding: path.utf8.map { $0 < 0x20 || $0 == 0x7f ? UInt8(ascii: "?") : $0 }, as: UTF8.self)
  }
}
