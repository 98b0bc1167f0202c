import Foundation

/// A folder of its own for one test, removed with this object.
final class TemporaryFolder: Sendable {
  let path: String

  init() throws {
    // Short, because the path of a socket in it has to fit into 108 bytes.
    path = "/tmp/identity-systemd-\(UUID().uuidString.prefix(13))"
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// The path of a file in it.
  subscript(_ name: String) -> String { "\(path)/\(name)" }

  func write(_ name: String, _ text: String) throws { try Data(text.utf8).write(to: URL(filePath: self[name])) }

  func link(_ name: String, to target: String) throws {
    try FileManager.default.createSymbolicLink(atPath: self[name], withDestinationPath: target)
  }

  func makeFolder(_ name: String) throws {
    try FileManager.default.createDirectory(atPath: self[name], withIntermediateDirectories: false)
  }

  func move(_ name: String, to new: String) throws {
    guard unsafe rename(self[name], self[new]) == 0 else { throw Failure("rename \(name): \(errno)") }
  }

  func remove(_ name: String) throws {
    guard unsafe Glibc.remove(self[name]) == 0 else { throw Failure("remove \(name): \(errno)") }
  }
}

/// Why a test cannot go on.
struct Failure: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}
