package import Foundation

extension Process {
  /// Starts the process with no signal blocked. Test threads block all signals, and a child inherits the signal mask.
  package func runUnmasked() throws {
    var none = sigset_t()
    var before = sigset_t()
    unsafe sigemptyset(&none)
    unsafe pthread_sigmask(SIG_SETMASK, &none, &before)
    defer { unsafe pthread_sigmask(SIG_SETMASK, &before, nil) }
    try run()
  }
}

/// Runs a program until it exits.
package func run(_ command: [String], environment: [String: String] = [:], input: String? = nil) throws -> (
  status: Int32, output: String, errors: String
) {
  let process = Process()
  process.executableURL = URL(filePath: command[0].hasPrefix("/") ? command[0] : "/usr/bin/env")
  process.arguments = command[0].hasPrefix("/") ? Array(command.dropFirst()) : command
  process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
  let output = Pipe()
  let errors = Pipe()
  let standardInput = Pipe()
  process.standardOutput = output
  process.standardError = errors
  process.standardInput = standardInput
  // As long as this end is open, a program that ends without reading its input raises no SIGPIPE here.
  let reading = fcntl(standardInput.fileHandleForReading.fileDescriptor, F_DUPFD_CLOEXEC, 0)
  defer { close(reading) }
  try process.runUnmasked()
  // A program waits while one of its pipes is full.
  let reader = PipeReader(errors)
  try standardInput.fileHandleForWriting.write(contentsOf: Data((input ?? "").utf8))
  try standardInput.fileHandleForWriting.close()
  let out = try output.fileHandleForReading.readToEnd() ?? Data()
  let error = reader.wait()
  process.waitUntilExit()
  return (process.terminationStatus, String(decoding: out, as: UTF8.self), String(decoding: error, as: UTF8.self))
}

/// Reads a pipe to its end in a thread of its own.
private final class PipeReader: @unchecked Sendable {
  // Sendable: only the thread writes `data`, and it is read after the thread has signalled its end.
  private var data = Data()
  private let done = DispatchSemaphore(value: 0)

  init(_ pipe: Pipe) {
    let file = pipe.fileHandleForReading
    Thread.detachNewThread { [self] in
      data = (try? file.readToEnd()) ?? Data()
      done.signal()
    }
  }

  func wait() -> Data {
    done.wait()
    return data
  }
}

/// Runs the bundled client against a daemon.
package func identityctl(_ daemon: DaemonUnderTest, _ words: String..., asUser: Int? = nil) throws -> (
  status: Int32, output: String, errors: String
) {
  let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
  let user = asUser.map { ["setpriv", "--reuid=\($0)", "--regid=\($0)", "--clear-groups"] } ?? []
  return try run(user + [program] + words, environment: ["IDENTITYD_SOCKET": daemon.socket])
}

/// Whether this process is root. Tests that act as several users, or attach to the daemon, need root.
package let isRoot = geteuid() == 0
