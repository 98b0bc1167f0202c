package import Foundation
import LinuxSystem

/// A real daemon in a folder of its own, on a real socket with a real store.
package final class DaemonUnderTest {
  /// The folder of the programs under test: `IDENTITYD_TESTED_BIN`, which may name programs built with a sanitizer, else
  /// the folder of the test runner.
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

  /// Makes the folder, on the disk or, for tests that start a daemon thousands of times, in memory. Nothing runs before
  /// ``start(_:)``.
  package init(inMemory: Bool = false, of programs: URL = binaries) throws {
    self.programs = programs
    let shared = "/dev/shm"
    let hasMemory = inMemory && FileManager.default.isWritableFile(atPath: shared)
    let base = hasMemory ? URL(filePath: shared) : FileManager.default.temporaryDirectory
    // Short, as ``TemporaryFolder/path`` is.
    folder = base.appending(path: "identityd-\(UUID().uuidString.prefix(18))")
    // Others have to reach the socket; the state is closed to them by its own mode.
    try FileManager.default.createDirectory(
      at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
  }

  deinit {
    stop()
    var failure: (any Error)?
    // A process below the one that was killed may be on its way out and write once more.
    for _ in 1...100 where FileManager.default.fileExists(atPath: folder.path) {
      do {
        return try FileManager.default.removeItem(at: folder)
      } catch {
        failure = error
        usleep(10_000)
      }
    }
    // The run fails if anything is left, and this line says why.
    if let failure { FileHandle.standardError.write(Data("\(folder.path) is left behind: \(failure)\n".utf8)) }
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

  /// Starts the daemon without waiting; its log goes to the file, or where it is told.
  package func launch(_ options: [String] = [], through wrapper: [String] = [], on log: FileHandle? = nil) throws {
    process = Process()
    // Only the daemon is searched for leaks: a leak of a test does no harm.
    var environment = ProcessInfo.processInfo.environment
    if let options = environment["ASAN_OPTIONS"] { environment["ASAN_OPTIONS"] = "\(options):detect_leaks=1" }
    process.environment = environment
    // LeakSanitizer is a tracer itself, and cannot work where another one is.
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

  /// Everything that was logged.
  package var log: String { (try? String(contentsOf: logFile, encoding: .utf8)) ?? "" }

  /// Waits until the log holds the text, that many times: it is written behind the answers.
  package func waitForLog(_ text: String, times: Int = 1) throws {
    let deadline = Date(timeIntervalSinceNow: patience)
    while Date() < deadline {
      if log.components(separatedBy: text).count > times { return }
      usleep(5_000)
    }
    throw Failure("'\(text)' was not logged \(times) times: \(log)")
  }

  /// Waits until it has given back the memory that its start took, as strace(1) has it.
  package func waitForRelease(in trace: URL) throws {
    let deadline = Date(timeIntervalSinceNow: patience)
    while Date() < deadline {
      if try String(contentsOf: trace, encoding: .utf8).contains("MADV_DONTNEED") { return }
      usleep(20_000)
    }
    throw Failure("no memory was given back")
  }

  /// Sends a signal and, where the daemon has to end of it, waits for that.
  ///
  /// - Returns: the exit status, or 128 and the signal's number.
  @discardableResult
  package func end(with signal: Int32 = SIGTERM) -> Int32 {
    kill(process.processIdentifier, signal)
    process.waitUntilExit()
    return process.terminationReason == .exit ? process.terminationStatus : 128 + process.terminationStatus
  }

  /// The exit status of a daemon that cannot run and has to end by itself; one that runs on is killed, which shows in it.
  package func exitStatus() -> Int32 {
    let deadline = Date(timeIntervalSinceNow: patience)
    while process.isRunning, Date() < deadline { usleep(5_000) }
    return process.isRunning ? end(with: SIGKILL) : process.terminationStatus
  }

  private func stop() { if started, process.isRunning { end(with: SIGKILL) } }

  /// A fresh connection.
  package func client() throws -> Client { try Client(socket) }

  /// A file of it in /proc, whole: Foundation takes the first part that is read of such a file for all of it.
  package func kernelFile(_ name: String) throws -> String {
    let file = try FileHandle(forReadingFrom: URL(filePath: "/proc/\(process.processIdentifier)/\(name)"))
    defer { try? file.close() }
    return String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
  }

  /// Everything in its memory that can be read.
  package func memory() throws -> Data {
    let file = try FileHandle(forReadingFrom: URL(filePath: "/proc/\(process.processIdentifier)/mem"))
    var memory = Data()
    for line in try kernelFile("maps").split(separator: "\n") where line.contains(" rw") {
      let ends = line.prefix { $0 != " " }.split(separator: "-").compactMap { UInt64($0, radix: 16) }
      guard ends.count == 2, ends[1] - ends[0] < 1 << 28 else { continue }
      try file.seek(toOffset: ends[0])
      memory += (try? file.read(upToCount: Int(ends[1] - ends[0]))) ?? Data()
      // So that nothing is found across the end of one stretch and the beginning of another.
      memory.append(0)
    }
    return memory
  }

  /// The most memory that it ever had (`VmHWM`, proc(5)), in bytes.
  package func peakMemory() throws -> Int {
    for line in try kernelFile("status").split(separator: "\n") where line.hasPrefix("VmHWM:") {
      if let kibibytes = Int(line.split(whereSeparator: \.isWhitespace)[1]) { return kibibytes * 1_024 }
    }
    throw Failure("the kernel does not say what the peak was")
  }

  /// The final line of one request on a connection of its own.
  package func ask(_ request: String) throws -> String { try client().ask(request).last ?? "" }

  /// The UUID that a request is answered with.
  package func uuid(_ request: String) throws -> String {
    let answer = try ask(request)
    guard let word = answer.split(separator: " ").dropFirst().first else { throw Failure("\(request): \(answer)") }
    return String(word)
  }
}
