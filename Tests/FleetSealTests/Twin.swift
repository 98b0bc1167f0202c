import Foundation
import TestSupport
import Testing

/// The second implementation of the messages, in Python.
enum Twin {
  /// The root of the sample account.
  static let root = hexadecimal(0..<32)

  /// Returns the answer of the other implementation to a command.
  static func ask(_ command: [String: Any]) throws -> [String: Any] {
    let script = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "fleet_twin.py").path
    let line = String(decoding: try JSONSerialization.data(withJSONObject: command), as: UTF8.self)
    let outcome = try run(["/usr/bin/python3", script], input: line + "\n")
    try #require(outcome.status == 0, "\(outcome.errors)")
    return try #require(JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [String: Any])
  }
}
