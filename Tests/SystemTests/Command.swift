import Foundation
import TestSupport

/// The exit status and the output of a program.
struct Outcome: Sendable {
  let status: Int32
  let output: String
  let errors: String
}

/// The checkout of these tests.
let checkout = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
  .deletingLastPathComponent()

/// Runs a program until it exits, without blocking the thread, so that other tests go on.
///
/// The output goes to files: a pipe would stay open as long as a background process of the program.
func run(_ program: URL, _ arguments: [String], environment: [String: String] = [:]) async throws -> Outcome {
  let folder = FileManager.default.temporaryDirectory.appending(path: "identityd-system-test-\(UUID().uuidString)")
  try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
  defer { try? FileManager.default.removeItem(at: folder) }
  let output = folder.appending(path: "output")
  let errors = folder.appending(path: "errors")
  for file in [output, errors] { try Data().write(to: file) }

  let process = Process()
  process.executableURL = program
  process.arguments = arguments
  process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
  process.standardInput = FileHandle.nullDevice
  let handles = try [output, errors].map { try FileHandle(forWritingTo: $0) }
  // Closed explicitly: an ended Process keeps its handles, and Foundation crashes with a thousand descriptors.
  defer { for handle in handles { try? handle.close() } }
  process.standardOutput = handles[0]
  process.standardError = handles[1]
  try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
    process.terminationHandler = { _ in continuation.resume() }
    do {
      try process.run()
    } catch {
      process.terminationHandler = nil
      continuation.resume(throwing: error)
    }
  }
  process.terminationHandler = nil
  return Outcome(
    status: process.terminationStatus, output: try String(contentsOf: output, encoding: .utf8),
    errors: try String(contentsOf: errors, encoding: .utf8))
}

/// Waits until a condition holds.
///
/// - Throws: a failure that names `what`, after the time limit.
func eventually(
  _ what: String, within limit: Duration = .seconds(60), _ condition: () async throws -> Bool
) async throws {
  let deadline = ContinuousClock.now + limit
  while try await !condition() {
    guard ContinuousClock.now < deadline else { throw Failure("in vain waited for this: \(what)") }
    // Each check may start a command inside a container, so polling without a pause would keep a processor busy.
    try await Task.sleep(for: .milliseconds(200))
  }
}
