import Foundation

/// A folder of its own for one test, removed with this object.
final class TemporaryFolder {
  let path: String

  init() throws {
    // Not Foundation's own name for it: the path of a socket in it has to fit into 108 bytes.
    path = "/tmp/identity-linux-\(UUID().uuidString.prefix(13))"
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// The path of a file in it.
  subscript(_ name: String) -> String { "\(path)/\(name)" }

  func write(_ name: String, _ text: String) throws { try Data(text.utf8).write(to: URL(filePath: self[name])) }

  func text(_ name: String) throws -> String { try String(contentsOfFile: self[name], encoding: .utf8) }

  func link(_ name: String, to target: String) throws {
    try FileManager.default.createSymbolicLink(atPath: self[name], withDestinationPath: target)
  }

  func makeFolder(_ name: String) throws {
    try FileManager.default.createDirectory(atPath: self[name], withIntermediateDirectories: false)
  }

  func makeFIFO(_ name: String) throws {
    let made = unsafe mkfifo(self[name], 0o600)
    guard made == 0 else { throw Failure("no fifo") }
  }

  /// What stands there, not following links; nil where nothing does.
  func kind(_ name: String) -> FileAttributeType? {
    (try? FileManager.default.attributesOfItem(atPath: self[name]))?[.type] as? FileAttributeType
  }

  func mode(_ name: String) throws -> Int {
    let mode = try FileManager.default.attributesOfItem(atPath: self[name])[.posixPermissions] as? Int
    guard let mode else { throw Failure("no mode of \(name)") }
    return mode
  }

  func names() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: path).sorted() }
}

/// Why a test cannot go on.
struct Failure: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

/// Runs the body and returns the error that it throws.
func failure<Failing: Error>(of type: Failing.Type = Failing.self, _ body: () throws -> Void) throws -> Failing {
  do {
    try body()
  } catch let error as Failing {
    return error
  }
  throw Failure("nothing was thrown")
}
