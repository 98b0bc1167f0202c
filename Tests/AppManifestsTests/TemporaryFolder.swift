import Foundation

/// A folder of its own for one test, removed with this object.
final class TemporaryFolder {
  let path: String

  init() throws {
    path = FileManager.default.temporaryDirectory.appending(path: "identity-manifests-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// The path of a file in it.
  subscript(_ name: String) -> String { "\(path)/\(name)" }

  /// Writes a file, making the folders it stands in.
  func write(_ name: String, _ text: String) throws {
    try makeFolder(of: name)
    try Data(text.utf8).write(to: URL(filePath: self[name]))
  }

  /// Makes a symbolic link, and the folders it stands in.
  func link(_ name: String, to target: String) throws {
    try makeFolder(of: name)
    try FileManager.default.createSymbolicLink(atPath: self[name], withDestinationPath: target)
  }

  /// Makes an empty folder, and those it stands in.
  func makeFolder(_ name: String) throws {
    try FileManager.default.createDirectory(atPath: self[name], withIntermediateDirectories: true)
  }

  func setMode(_ name: String, _ mode: Int) throws {
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: self[name])
  }

  private func makeFolder(of name: String) throws {
    let folder = URL(filePath: self[name]).deletingLastPathComponent()
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  }
}
