import Foundation
import LinuxSystem

/// A daemon of the release build, with a state, a socket and a configuration of its own.
final class MeasuredDaemon {
  /// How long it may take from its start to its first answer, in seconds.
  private static let patience = 120.0

  private let folder: URL
  private let guardian: Guardian
  private var process = Process()
  /// Where it listens.
  var socket: String { folder.appending(path: "socket").path }
  private var configurationFile: URL { folder.appending(path: "identityd.conf") }
  private var logFile: URL { folder.appending(path: "log") }

  /// Makes its folder. Nothing runs before ``start()``.
  init(named name: String, configuration: String, guardian: Guardian) throws {
    folder = guardian.folder.appending(path: name)
    self.guardian = guardian
    // No manifest of this machine has a say in it.
    let manifests = folder.appending(path: "apps.d")
    try FileManager.default.createDirectory(at: manifests, withIntermediateDirectories: true)
    try Data("[Apps]\nDirectories=\(manifests.path)\n\(configuration)".utf8).write(to: configurationFile)
    try Data().write(to: logFile)
  }

  /// Starts it, and waits until it answers.
  ///
  /// - Returns: how long that took, from exec to the answer to the first `ping`.
  func start() throws -> Duration {
    process = Process()
    process.executableURL = try Self.program()
    process.arguments = [
      "--state-directory", folder.appending(path: "state").path, "--socket", socket, "--config", configurationFile.path,
    ]
    let log = try FileHandle(forWritingTo: logFile)
    defer { try? log.close() }
    try log.seekToEnd()
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = log
    process.standardError = log
    let started = ContinuousClock.now
    try process.run()
    try guardian.watch(process.processIdentifier)
    let deadline = Date(timeIntervalSinceNow: Self.patience)
    while process.isRunning, Date() < deadline {
      if let connection = try? connect(), (try? connection.ask(Array("ping\n".utf8), replies: 1)) != nil {
        return ContinuousClock.now - started
      }
      usleep(200)
    }
    throw Failure("identityd did not start: \(lastWords)")
  }

  /// Ends it as the service manager does, and waits for that.
  func stop() throws {
    process.terminate()
    process.waitUntilExit()
    guard process.terminationReason == .exit, process.terminationStatus == 0 else {
      throw Failure("identityd ended with status \(process.terminationStatus): \(lastWords)")
    }
  }

  /// A fresh connection.
  func connect() throws -> Connection { try Connection(to: socket) }

  /// The most memory that it ever had since its start (`VmHWM`, proc(5)), in bytes.
  func peakMemory() throws -> Int {
    let status = try String(contentsOfFile: "/proc/\(process.processIdentifier)/status", encoding: .utf8)
    let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
    guard let number = line?.split(whereSeparator: \.isWhitespace).dropFirst().first, let kibibytes = Int(number) else {
      throw Failure("there is no VmHWM in the status of process \(process.processIdentifier)")
    }
    return kibibytes * 1_024
  }

  /// The program that stands beside this one.
  private static func program() throws -> URL {
    let program = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
      .appending(path: "identityd")
    guard FileManager.default.isExecutableFile(atPath: program.path) else {
      throw Failure("there is no \(program.path): run packaging/bench, which builds it")
    }
    return program
  }

  /// The end of its log.
  private var lastWords: Substring { ((try? String(contentsOf: logFile, encoding: .utf8)) ?? "").suffix(2_000) }
}
