import Foundation
import Glibc

/// A folder of its own for one test, removed with this object.
final class TemporaryFolder: Sendable {
  private let path: String

  init() throws {
    path = "/tmp/identity-server-\(UUID().uuidString.prefix(13))"
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// The path of a file in it.
  subscript(_ name: String) -> String { "\(path)/\(name)" }

  func write(_ name: String) throws { try Data("x\n".utf8).write(to: URL(filePath: self[name])) }

  func make(_ name: String) throws {
    try FileManager.default.createDirectory(atPath: self[name], withIntermediateDirectories: false)
  }

  func makeAll(_ name: String) throws {
    try FileManager.default.createDirectory(atPath: self[name], withIntermediateDirectories: true)
  }

  func move(_ name: String, to new: String) throws {
    guard unsafe rename(self[name], self[new]) == 0 else { throw Failure("rename \(name): \(errno)") }
  }

  func remove(_ name: String) throws {
    guard unsafe Glibc.remove(self[name]) == 0 else { throw Failure("remove \(name): \(errno)") }
  }

  /// Makes a folder in one, with a name that is not UTF-8.
  func makeWithoutText(_ name: String) throws {
    let path = Array(self[name].utf8CString.dropLast()) + [CChar(UInt8(ascii: "/")), CChar(bitPattern: 0xff), 0]
    guard unsafe mkdir(path, 0o700) == 0 else { throw Failure("mkdir in \(name): \(errno)") }
  }
}
