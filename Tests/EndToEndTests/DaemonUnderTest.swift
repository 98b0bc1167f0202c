import Foundation
import LinuxSystem
import TestSupport
import Testing

/// A real daemon in a folder of its own, on a real socket with a real store.
final class DaemonUnderTest {
  /// The programs stand beside the test runner.
  static let binaries = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()

  /// Where the programs are that are built for release, without a sanitizer: for what is measured or traced.
  static let released =
    ProcessInfo.processInfo.environment["IDENTITYD_RELEASE_BIN"].map { URL(filePath: $0) } ?? binaries

  private let programs: URL
  let folder: URL
  var state: URL { folder.appending(path: "state") }
  var socket: String { folder.appending(path: "socket").path }
  private(set) var process = Process()
  private var started = false

  /// Makes the folder, on the disk or, for tests that start a daemon thousands of times, in memory. Nothing runs before
  /// ``start(_:)``.
  init(inMemory: Bool = false, of programs: URL = binaries) throws {
    self.programs = programs
    let shared = "/dev/shm"
    let hasMemory = inMemory && FileManager.default.isWritableFile(atPath: shared)
    let base = hasMemory ? URL(filePath: shared) : FileManager.default.temporaryDirectory
    folder = base.appending(path: "identityd-\(UUID().uuidString)")
    // Others have to reach the socket; the state is closed to them by its own mode.
    try FileManager.default.createDirectory(
      at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
  }

  deinit {
    stop()
    try? FileManager.default.removeItem(at: folder)
  }

  /// Starts the daemon and waits until it answers.
  @discardableResult
  func start(
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
  func launch(_ options: [String] = [], through wrapper: [String] = [], on log: FileHandle? = nil) throws {
    process = Process()
    // What tests leak does no harm, so that is looked for in the daemon alone.
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

  var configurationFile: URL { folder.appending(path: "identityd.conf") }
  private var logFile: URL { folder.appending(path: "log") }

  func configure(_ text: String) throws { try Data(text.utf8).write(to: configurationFile) }

  private func logHandle() throws -> FileHandle {
    if !FileManager.default.fileExists(atPath: logFile.path) { try Data().write(to: logFile) }
    let handle = try FileHandle(forWritingTo: logFile)
    try handle.seekToEnd()
    return handle
  }

  /// Everything that was logged.
  var log: String { (try? String(contentsOf: logFile, encoding: .utf8)) ?? "" }

  /// Waits until the log holds the text, that many times: it is written behind the answers.
  func waitForLog(_ text: String, times: Int = 1) throws {
    let deadline = Date(timeIntervalSinceNow: patience)
    while Date() < deadline {
      if log.components(separatedBy: text).count > times { return }
      usleep(5_000)
    }
    throw Failure("'\(text)' was not logged \(times) times: \(log)")
  }

  /// Waits until it has given back the memory that its start took, as strace(1) has it.
  func waitForRelease(in trace: URL) throws {
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
  func end(with signal: Int32 = SIGTERM) -> Int32 {
    kill(process.processIdentifier, signal)
    process.waitUntilExit()
    return process.terminationReason == .exit ? process.terminationStatus : 128 + process.terminationStatus
  }

  /// The exit status of a daemon that cannot run and has to end by itself; one that runs on is killed, which shows in it.
  func exitStatus() -> Int32 {
    let deadline = Date(timeIntervalSinceNow: patience)
    while process.isRunning, Date() < deadline { usleep(5_000) }
    return process.isRunning ? end(with: SIGKILL) : process.terminationStatus
  }

  private func stop() { if started, process.isRunning { end(with: SIGKILL) } }

  /// A fresh connection.
  func client() throws -> Client { try Client(socket) }

  /// A file of it in /proc, whole: Foundation takes the first part that is read of such a file for all of it.
  func kernelFile(_ name: String) throws -> String {
    let file = try FileHandle(forReadingFrom: URL(filePath: "/proc/\(process.processIdentifier)/\(name)"))
    defer { try? file.close() }
    return String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
  }

  /// Everything in its memory that can be read.
  func memory() throws -> Data {
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
  func peakMemory() throws -> Int {
    let line = try #require(try kernelFile("status").split(separator: "\n").first { $0.hasPrefix("VmHWM:") })
    return try #require(Int(line.split(whereSeparator: \.isWhitespace)[1])) * 1_024
  }

  /// The final line of one request on a connection of its own.
  func ask(_ request: String) throws -> String { try client().ask(request).last ?? "" }

  /// The UUID that a request is answered with.
  func uuid(_ request: String) throws -> String {
    let answer = try ask(request)
    return try #require(answer.split(separator: " ").dropFirst().first.map(String.init), "\(answer)")
  }
}

/// A client of nothing but a socket and lines.
final class Client {
  private let socket: Descriptor
  private var received = ReceivedLines()

  init(_ path: String) throws {
    socket = try UnixSocket.connect(to: path)
    // A daemon that never answers must fail the test, not hang it.
    var limit = timeval(tv_sec: Int(patience), tv_usec: 0)
    unsafe setsockopt(socket.number, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
  }

  func send(_ text: String) throws { try send(Array(text.utf8)) }

  func send(_ bytes: [UInt8]) throws { try socket.sendAll(bytes) }

  /// Nothing more comes from here.
  func endWriting() throws { try socket.shutdownWriting() }

  /// The next line without its end; nil at the end of the stream.
  func line() throws -> String? {
    try received.next {
      var chunk = [UInt8](repeating: 0, count: 65_536)
      guard let count = try socket.read(into: &chunk) else { throw Failure("no answer within \(patience) s") }
      return chunk[..<count]
    }
  }

  /// The lines of the next answer.
  func answer() throws -> [String] {
    var lines: [String] = []
    while let line = try line() {
      lines.append(line)
      if !line.hasPrefix("*") { return lines }
    }
    throw Failure("the connection ended after \(lines)")
  }

  /// Sends one request and returns the lines of its answer.
  func ask(_ request: String) throws -> [String] {
    try send(request + "\n")
    return try answer()
  }

  /// Everything up to the end of the stream.
  func rest() throws -> [String] {
    var lines: [String] = []
    while let line = try line() { lines.append(line) }
    return lines
  }
}

/// A connection of another user, held open by a program that copies lines.
final class OtherUser {
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()

  init(_ user: Int, of daemon: DaemonUnderTest) throws {
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = [
      "setpriv", "--reuid=\(user)", "--regid=\(user)", "--clear-groups", "socat", "-t", "20", "-",
      "UNIX-CONNECT:\(daemon.socket)",
    ]
    process.standardInput = input
    process.standardOutput = output
    try process.runUnmasked()
  }

  func send(_ request: String) throws { try input.fileHandleForWriting.write(contentsOf: Data("\(request)\n".utf8)) }

  /// Sends one request and returns what comes of it at once.
  func ask(_ request: String) throws -> String {
    try send(request)
    return String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
  }

  /// Says goodbye, and returns everything that came up to the end.
  func quit() throws -> String {
    try send("quit")
    try input.fileHandleForWriting.close()
    return try rest()
  }

  /// Everything up to the end of the connection, which has to come by itself.
  func rest() throws -> String {
    let text = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
    process.waitUntilExit()
    return text
  }

  /// Ends the connection.
  func end() throws {
    try input.fileHandleForWriting.close()
    process.waitUntilExit()
  }
}

extension Process {
  /// Starts it with no signal blocked: test threads block them all, and a program would inherit that.
  func runUnmasked() throws {
    var none = sigset_t()
    var before = sigset_t()
    unsafe sigemptyset(&none)
    unsafe pthread_sigmask(SIG_SETMASK, &none, &before)
    defer { unsafe pthread_sigmask(SIG_SETMASK, &before, nil) }
    try run()
  }
}

/// Runs a program to its end.
func run(_ command: [String], environment: [String: String] = [:], input: String? = nil) throws -> (
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
  try process.runUnmasked()
  try standardInput.fileHandleForWriting.write(contentsOf: Data((input ?? "").utf8))
  try standardInput.fileHandleForWriting.close()
  let out = try output.fileHandleForReading.readToEnd() ?? Data()
  let error = try errors.fileHandleForReading.readToEnd() ?? Data()
  process.waitUntilExit()
  return (process.terminationStatus, String(decoding: out, as: UTF8.self), String(decoding: error, as: UTF8.self))
}

/// Runs the bundled client against a daemon.
func identityctl(_ daemon: DaemonUnderTest, _ words: String..., asUser: Int? = nil) throws -> (
  status: Int32, output: String, errors: String
) {
  let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
  let user = asUser.map { ["setpriv", "--reuid=\($0)", "--regid=\($0)", "--clear-groups"] } ?? []
  return try run(user + [program] + words, environment: ["IDENTITYD_SOCKET": daemon.socket])
}

/// Tests that act as several users, or attach to the daemon, need root.
let isRoot = geteuid() == 0
