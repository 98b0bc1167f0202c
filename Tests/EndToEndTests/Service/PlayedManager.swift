import Foundation
import TestSupport

/// The socket of a fake service manager (sd_notify(3)), which writes all notifications to a file.
final class PlayedManager {
  let path: String
  private let file: URL
  private let process = Process()

  init(in folder: URL) throws {
    path = folder.appending(path: "notify").path
    file = folder.appending(path: "notifications")
    try Data().write(to: file)
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = ["socat", "-u", "UNIX-RECV:\(path)", "STDOUT"]
    process.standardOutput = try FileHandle(forWritingTo: file)
    try process.runUnmasked()
    let deadline = Date(timeIntervalSinceNow: patience)
    while !FileManager.default.fileExists(atPath: path) {
      guard Date() < deadline else { throw Failure("there is no socket at \(path)") }
      usleep(1_000)
    }
  }

  deinit {
    process.terminate()
    process.waitUntilExit()
  }

  /// All notifications so far.
  var told: String { (try? String(contentsOf: file, encoding: .utf8)) ?? "" }

  /// Returns how often a text was received.
  func count(_ text: String) -> Int { told.components(separatedBy: text).count - 1 }

  /// Waits until a text has been received `times` times.
  func wait(for text: String, times: Int = 1) throws {
    let deadline = Date(timeIntervalSinceNow: patience)
    while count(text) < times {
      guard Date() < deadline else { throw Failure("'\(text)' was not said \(times) times: \(told)") }
      usleep(2_000)
    }
  }
}
