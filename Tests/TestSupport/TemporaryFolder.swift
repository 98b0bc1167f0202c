package import Foundation

/// Returns a path in the folder for temporary files (`TMPDIR`, else `/tmp`), which `packaging/test` empties at its end.
package func temporaryPath(_ name: String) -> String {
  FileManager.default.temporaryDirectory.appending(path: name).path
}

/// Returns the name of a cgroup for one test.
///
/// It begins with the name of this test run, which removes its cgroups at its end (see `packaging/tools/isolate`).
package func controlGroupName() -> String {
  let scratch = ProcessInfo.processInfo.environment["IDENTITYD_TEST_SCRATCH"] ?? "identityd-test"
  return "\(URL(filePath: scratch).lastPathComponent)-\(UUID().uuidString)"
}

/// A folder for one test, removed with this object.
package final class TemporaryFolder: Sendable {
  /// The path, kept short: the path of a socket in it must fit into 108 bytes (unix(7)).
  package let path: String

  /// Creates the folder with access for its owner alone.
  package init() throws {
    path = temporaryPath("identity-\(UUID().uuidString.prefix(18))")
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// Returns the path of a file in the folder.
  package subscript(_ name: String) -> String { "\(path)/\(name)" }

  // MARK: Creating

  /// Writes a file, and creates the folders above it.
  package func write(_ name: String, _ text: String = "x\n") throws {
    try makeFolder(of: name)
    try Data(text.utf8).write(to: URL(filePath: self[name]))
  }

  /// Creates a symbolic link, and the folders above it.
  package func link(_ name: String, to target: String) throws {
    try makeFolder(of: name)
    try FileManager.default.createSymbolicLink(atPath: self[name], withDestinationPath: target)
  }

  /// Creates an empty folder, and the folders above it.
  package func makeFolder(_ name: String) throws {
    try FileManager.default.createDirectory(atPath: self[name], withIntermediateDirectories: true)
  }

  private func makeFolder(of name: String) throws {
    let folder = URL(filePath: self[name]).deletingLastPathComponent()
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  }

  /// Creates a FIFO that only its owner may use.
  package func makeFIFO(_ name: String) throws {
    guard unsafe mkfifo(self[name], 0o600) == 0 else { throw Failure("mkfifo \(name): \(errno)") }
  }

  /// Changes the mode of a file or folder.
  package func setMode(_ name: String, _ mode: Int) throws {
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: self[name])
  }

  /// Renames a file or folder atomically.
  package func move(_ name: String, to new: String) throws {
    guard unsafe rename(self[name], self[new]) == 0 else { throw Failure("rename \(name): \(errno)") }
  }

  /// Removes a file or an empty folder.
  package func remove(_ name: String) throws {
    guard unsafe Foundation.remove(self[name]) == 0 else { throw Failure("remove \(name): \(errno)") }
  }

  // MARK: Inspecting

  /// Returns the text of a file.
  package func text(_ name: String) throws -> String { try String(contentsOfFile: self[name], encoding: .utf8) }

  /// Returns the file type without following links. Nil if nothing has this name.
  package func kind(_ name: String) -> FileAttributeType? {
    (try? FileManager.default.attributesOfItem(atPath: self[name]))?[.type] as? FileAttributeType
  }

  /// Returns the mode of a file or folder.
  package func mode(_ name: String) throws -> Int {
    let mode = try FileManager.default.attributesOfItem(atPath: self[name])[.posixPermissions] as? Int
    guard let mode else { throw Failure("no mode of \(name)") }
    return mode
  }

  /// Returns the sorted names in the folder.
  package func names() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: path).sorted() }
}
