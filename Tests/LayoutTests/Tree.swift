import Foundation

/// The source tree that this test was built from.
enum Tree {
  static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  /// Returns the files below a folder with one of these extensions, as paths from the root.
  static func files(below folder: String, _ endings: String...) throws -> [String] {
    let base = root.appending(path: folder)
    guard let walk = FileManager.default.enumerator(atPath: base.path) else { return [] }
    return walk.compactMap { $0 as? String }.filter { path in endings.contains { path.hasSuffix(".\($0)") } }.map {
      "\(folder)/\($0)"
    }.sorted()
  }

  static func text(_ path: String) throws -> String {
    try String(contentsOf: root.appending(path: path), encoding: .utf8)
  }

  static func lines(_ path: String) throws -> [Substring] {
    try text(path).split(separator: "\n", omittingEmptySubsequences: false)
  }
}
