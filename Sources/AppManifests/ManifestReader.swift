import ConfigurationFiles
import Glibc
package import IdentityCore
import LinuxSystem

/// Reads the manifests of apps: files named `<app id>.app`, one per app, in the manifest folders.
///
/// Of several files with the same name, the one in the most important folder counts, even if it is faulty. A link to
/// /dev/null in place of the file means that there is no such app (systemd-system.conf(5), "configuration directories
/// and precedence").
package enum ManifestReader {
  /// Reads every manifest.
  ///
  /// A file that cannot be used gets an entry without a manifest, so that the app keeps its present manifest.
  ///
  /// - Parameters:
  ///   - folders: the folders, most important first. A missing folder counts as empty.
  ///   - untrustedPlaces: the directories below which no manifest can give rights or replace an app.
  /// - Returns: the manifests without user IDs (see ``userIDs(of:)``), or the reason why no conclusion is possible.
  package static func survey(
    _ folders: [String], untrustedPlaces: [String] = ManifestReader.untrustedPlaces
  ) -> ManifestSurvey {
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
        if !isMasked(path) { faults.append("\(printable(path)): the name before .app must be \(Text.manifestNames)") }
        continue
      }
      do {
        guard let settings = try settings(ofFile: path) else { continue }
        let isTrusted = !untrustedPlaces.contains { path.hasPrefix("\($0)/") }
        let manifest = try Manifest(of: id, settings, isTrusted: isTrusted, ignored: &faults)
        entries[id] = ManifestSurvey.Entry(file: path, manifest: manifest)
      } catch {
        faults.append("\(error)")
        entries[id] = ManifestSurvey.Entry(file: path, manifest: nil)
      }
    }
    return .found(entries, faults: faults)
  }

  /// The directories below which no manifest can give rights or replace an app.
  ///
  /// Services fill /run while they run, and /usr/local may belong to a group of users (Debian Policy, section 9.1.2).
  package static let untrustedPlaces = ["/run", "/usr/local"]

  /// The suffix of a manifest's file name.
  private static let suffix = ".app".utf8

  /// Returns the manifest files that count, sorted by name.
  ///
  /// Names are compared by bytes. As strings, `\u{212A}.app` would pass for `K.app`.
  ///
  /// - Throws: the folder that could not be read, or that holds one manifest too many.
  private static func files(in folders: [String]) throws(ConfigurationFailure) -> [(name: Text, path: String)] {
    var paths: [Text: String] = [:]
    for folder in folders {
      // Skips hidden files, which editors leave behind. systemd skips them too.
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

  /// Returns the names in a folder; none if the folder does not exist.
  ///
  /// A file or a dangling link in place of the folder is an error. Treating it as an empty folder would uninstall
  /// the apps.
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
    throw ConfigurationFailure(place: folder, reason: "this is not a directory")
  }

  /// Returns the settings of one file; nil if the file is masked.
  ///
  /// - Throws: the reason why the file cannot be used, with the line.
  private static func settings(ofFile path: String) throws(ConfigurationFailure) -> [Setting]? {
    let content: ConfigurationAccess.Content
    do {
      content = try ConfigurationAccess.read(path: path, limit: Bound.fileLength)
    } catch {
      let reason =
        switch error.code {
        case EINVAL: "this is not a regular file"
        case EFBIG: "the manifest is longer than \(Bound.fileLength) bytes"
        default: SystemError.text(of: error.code)
        }
      throw ConfigurationFailure(place: path, reason: reason)
    }
    switch content {
    case .masked: return nil
    case .missing:
      throw ConfigurationFailure(place: path, reason: "this is a dangling link, or the file was just removed")
    case .bytes(let bytes):
      let settings = try INIFile.parse(bytes, file: path)
      // A power cut or a write in place can leave an empty file for a moment. Such a file must not pass for a change of
      // the app's vendor.
      guard !settings.isEmpty else { throw ConfigurationFailure(place: path, reason: "the manifest has no settings") }
      return settings
    }
  }

  private static func isMasked(_ path: String) -> Bool {
    (try? ConfigurationAccess.read(path: path, limit: 0)) == .masked
  }

  /// Returns the path without control characters, for a log line. A file name can contain any byte but a slash.
  private static func printable(_ path: String) -> String {
    String(decoding: path.utf8.map { $0 < 0x20 || $0 == 0x7f ? UInt8(ascii: "?") : $0 }, as: UTF8.self)
  }
}
