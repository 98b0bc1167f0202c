package import Foundation
import LinuxSystem

/// A real daemon with its own folder, socket and store.
package final class DaemonUnderTest {
  /// The folder of the programs under test: `IDENTITYD_TESTED_BIN`, which may hold programs built with a sanitizer
  /// or the shipped ones, else the folder of the test runner.
  package static let binaries =
    folder(in: "IDENTITYD_TESTED_BIN")
    ?? URL(filePath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()

  /// The folder of the release build, for tests that measure or trace: `IDENTITYD_RELEASE_BIN`, else ``binaries``.
  package static let released = folder(in: "IDENTITYD_RELEASE_BIN") ?? binaries

  private static func folder(in variable: String) -> URL? {
    ProcessInfo.processInfo.environment[variable].map { URL(filePath: $0) }
  }

  private let programs: URL
  package let folder: URL
  package var state: URL { folder.appending(path: "state") }
  package var socket: String { folder.appending(path: "socket").path }
  package private(set) var process = Process()
  private var started = false

  /// Creates the folder. Starts no process before ``start(_:)``.
  ///
  /// - Parameter inMemory: whether the folder is in memory, for tests that start a daemon thousands of times.
  package init(inMemory: Bool = false, of programs: URL = binaries) throws {
    self.programs = programs
    let shared = "/dev/shm"
    let hasMemory = inMemory && FileManager.default.isWritableFile(atPath: shared)
    let base = hasMemory ? URL(filePath: shared) : FileManager.default.temporaryDirectory
    // Short, for the reason at ``TemporaryFolder/path``.
    folder = base.appending(path: "identityd-\(UUID().uuidString.prefix(18))")
    // Other users must reach the socket. The mode of the state directory keeps them out of the state.
    try FileManager.default.createDirectory(
      at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
  }

  deinit {
    stop()
    var failure: (any Error)?
    // A child of the killed process may still be exiting, and may write once more.
    for _ in 1...100 where FileManager.default.fileExists(atPath: folder.path) {
      do {
        return try FileManager.default.removeItem(at: folder)
      } catch {
        failure = error
        usleep(10_000)
      }
    }
    // A left-over file fails the test run. This line gives the reason.
    if let failure { FileHandle.standardError.write(Data("\(folder.path) is left behind: \(failure)\n".utf8)) }
  }

  /// Returns the command that runs a daemon on a machine whose `/etc/machine-id` has this content.
  package func onMachine(withID content: String) throws -> [String] {
    let file = folder.appending(path: "machine-id")
    try Data(content.utf8).write(to: file)
    return ["unshare", "--mount", "sh", "-c", "mount --bind \(file.path) /etc/machine-id && exec \"$@\"", "-"]
  }

  /// Starts the daemon and waits until it answers.
  @discardableResult
  package func start(
    _ options: [String] = [], through wrapper: [String] = [], configuration: String? = nil, on log: FileHandle? = nil
  ) throws -> DaemonUnderTest {
    if let configuration { try configure(configuration) }
    try launch(options, through: wrapper, on: log)
    let deadline = Date(timeIntervalSinceNow: patience)
    while Date() < deadline, process.isRunning {
      if let client = try? Client(socket), (try? client.ask("ping")) == ["OK"] { return self }
      usleep(5_000)
    }
    throw Failure("the daemon did not start: \(self.log)")
  }

  /// Starts the daemon without waiting. Its log goes to `log`, or by default to a file.
  package func launch(_ options: [String] = [], through wrapper: [String] = [], on log: FileHandle? = nil) throws {
    process = Process()
    // Checks only the daemon for leaks: a leak of a test is harmless.
    var environment = ProcessInfo.processInfo.environment
    if let options = environment["ASAN_OPTIONS"] { environment["ASAN_OPTIONS"] = "\(options):detect_leaks=1" }
    process.environment = environment
    // LeakSanitizer traces the process itself and fails under another tracer.
    let programs = wrapper.first == "strace" ? Self.released : programs
    let own = [
      programs.appending(path: "identityd").path, "--state-directory", state.path, "--socket", socket, "--config",
      configurationFile.path,
    ]
    if !FileManager.default.fileExists(atPath: configurationFile.path) { try configure("") }
    let command = wrapper + own + options
    process.executableURL = URL(filePath: command[0].hasPrefix("/") ? command[0] : "/usr/bin/env")
    process.arguments = command[0].hasPrefix("/") ? Array(command.dropFirst()) : command
    let handle = try logHandle()
    process.standardError = log ?? handle
    process.standardOutput = handle
    process.standardInput = FileHandle.nullDevice
    try process.runUnmasked()
    started = true
  }

  package var configurationFile: URL { folder.appending(path: "identityd.conf") }
  private var logFile: URL { folder.appending(path: "log") }

  package func configure(_ text: String) throws { try Data(text.utf8).write(to: configurationFile) }

  private func logHandle() throws -> FileHandle {
    if !FileManager.default.fileExists(atPath: logFile.path) { try Data().write(to: logFile) }
    let handle = try FileHandle(forWritingTo: logFile)
    try handle.seekToEnd()
    return handle
  }

  /// The whole log so far.
  package var log: String { (try? String(contentsOf: logFile, encoding: .utf8)) ?? "" }

  /// Waits until the log contains the text `times` times. The daemon writes its log after its answers.
  package func waitForLog(_ text: String, times: Int = 1) throws {
    let deadline = Date(timeIntervalSinceNow: patience)
    while Date() < deadline {
      if log.components(separatedBy: text).count > times { return }
      usleep(5_000)
    }
    throw Failure("'\(text)' was not logged \(times) times: \(log)")
  }

  /// Waits until the trace of strace(1) shows that the daemon has released the memory of its start.
  package func waitForRelease(in trace: URL) throws {
    let deadline = Date(timeIntervalSinceNow: patience)
    while Date() < deadline {
      if try String(contentsOf: trace, encoding: .utf8).contains("MADV_DONTNEED") { return }
      usleep(20_000)
    }
    throw Failure("no memory was given back")
  }

  /// Sends a signal and waits until the daemon exits.
  ///
  /// - Returns: the exit status, or 128 plus the signal's number.
  @discardableResult
  package func end(with signal: Int32 = SIGTERM) -> Int32 {
    kill(process.processIdentifier, signal)
    process.waitUntilExit()
    return process.terminationReason == .exit ? process.terminationStatus : 128 + process.terminationStatus
  }

  /// Waits for a daemon that cannot start to exit, and returns its status. A daemon that keeps running is killed with
  /// SIGKILL, which shows in the status.
  package func exitStatus() -> Int32 {
    let deadline = Date(timeIntervalSinceNow: patience)
    while process.isRunning, Date() < deadline { usleep(5_000) }
    return process.isRunning ? end(with: SIGKILL) : process.terminationStatus
  }

  private func stop() { if started, process.isRunning { end(with: SIGKILL) } }

  /// Opens a new connection.
  package func client() throws -> Client { try Client(socket) }

  /// Reads a file of the daemon's /proc directory to its end. Foundation takes the first partial read of such a file
  /// for the whole.
  package func kernelFile(_ name: String) throws -> String {
    let file = try FileHandle(forReadingFrom: URL(filePath: "/proc/\(process.processIdentifier)/\(name)"))
    defer { try? file.close() }
    return String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
  }

  /// Returns all readable and writable memory of the daemon.
  package func memory() throws -> Data {
    let file = try FileHandle(forReadingFrom: URL(filePath: "/proc/\(process.processIdentifier)/mem"))
    var memory = Data()
    for line in try kernelFile("maps").split(separator: "\n") where line.contains(" rw") {
      let ends = line.prefix { $0 != " " }.split(separator: "-").compactMap { UInt64($0, radix: 16) }
      guard ends.count == 2, ends[1] - ends[0] < 1 << 28 else { continue }
      try file.seek(toOffset: ends[0])
      memory += (try? file.read(upToCount: Int(ends[1] - ends[0]))) ?? Data()
      // Separates the mappings, so that no search matches across two of them.
      memory.append(0)
    }
    return memory
  }

  /// Returns the daemon's peak memory (`VmHWM`, proc(5)), in bytes.
  package func peakMemory() throws -> Int {
    for line in try kernelFile("status").split(separator: "\n") where line.hasPrefix("VmHWM:") {
      if let kibibytes = Int(line.split(whereSeparator: \.isWhitespace)[1]) { return kibibytes * 1_024 }
    }
    throw Failure("the kernel does not say what the peak was")
  }

  /// Sends one request on a new connection and returns the final line.
  package func ask(_ request: String) throws -> String { try client().ask(request).last ?? "" }

  /// Returns the UUID in the answer to a request.
  package func uuid(_ request: String) throws -> String {
    let answer = try ask(request)
    guard let word = answer.split(separator: " ").dropFirst().first else { throw Failure("\(request): \(answer)") }
    return String(word)
  }
}
