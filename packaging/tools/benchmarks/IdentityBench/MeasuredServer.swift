import Foundation
import LinuxSystem

/// A server with its own socket, log and state.
final class MeasuredServer {
  let name: String
  /// The folder for everything that the server writes.
  let folder: URL
  let socket: String
  private let arguments: [String]
  /// The question that shows whether the server runs.
  private let greeting: Question
  /// The process ID. 0 while the server does not run.
  private(set) var process: Int32 = 0
  private var log: String { folder.appending(path: "log").path }

  /// Creates the folder of a server. Nothing runs before ``start(asking:)``.
  ///
  /// - Parameters:
  ///   - configuration: returns the content of the configuration for a folder.
  ///   - arguments: returns the program and its arguments for a folder.
  init(
    _ name: String, guardian: Guardian, greeting: Question, configuration: (URL) -> String = { _ in "" },
    arguments: (URL) -> [String]
  ) throws {
    self.name = name
    self.greeting = greeting
    // The path of a socket must be short.
    folder = guardian.folder.appending(path: "\(guardian.next())")
    socket = Self.socket(in: folder)
    self.arguments = arguments(folder)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    try Data(configuration(folder).utf8).write(to: Self.configurationFile(in: folder))
  }

  static func socket(in folder: URL) -> String { folder.appending(path: "socket").path }

  static func configurationFile(in folder: URL) -> URL { folder.appending(path: "configuration") }

  // MARK: Starting and stopping

  /// Starts the server and waits until it answers.
  ///
  /// - Returns: the time from before the start of the program to the answer, in milliseconds.
  @discardableResult
  func start(asking question: Question? = nil) throws -> Double {
    try Placement.anywhere.apply(to: [])
    let question = question ?? greeting
    let started = nanoseconds()
    process = try spawn()
    while true {
      do {
        let connection = try Connection(to: socket)
        try connection.ask(question.request)
        guard connection.received.starts(with: question.reply[..<question.same]) else {
          throw BenchError("\(name) answers \(String(decoding: connection.received, as: UTF8.self))")
        }
        return Double(nanoseconds() - started) / 1e6
      } catch let error as SystemError where [ENOENT, ECONNREFUSED].contains(error.code) {
        guard waitpid(process, nil, WNOHANG) == 0, nanoseconds() - started < 60_000_000_000 else {
          throw BenchError("\(name) does not start: \(lastWords)")
        }
        usleep(20)
      }
    }
  }

  /// Starts the program with its output to the log. Foundation's `Process` would take longer than the fastest server.
  private func spawn() throws -> Int32 {
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
    unsafe posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log, O_WRONLY | O_CREAT | O_APPEND, 0o600)
    unsafe posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO)
    var words = unsafe arguments.map { unsafe strdup($0) } + [nil]
    defer { unsafe words.forEach { unsafe free($0) } }
    var process: pid_t = 0
    let code = unsafe posix_spawn(&process, arguments[0], &actions, nil, &words, environ)
    guard code == 0 else { throw BenchError("\(arguments[0]) cannot be started: \(SystemError.text(of: code))") }
    return process
  }

  /// Stops the server as the service manager does, or kills it, and waits for its exit.
  ///
  /// - Returns: the time from the signal to the exit, in milliseconds.
  @discardableResult
  func stop(_ signal: Int32 = SIGTERM) throws -> Double {
    let began = nanoseconds()
    var status: Int32 = 0
    guard process > 0, kill(process, signal) == 0 else { throw BenchError("\(name) has ended: \(lastWords)") }
    while unsafe waitpid(process, &status, WNOHANG) == 0 {
      guard nanoseconds() - began < 60_000_000_000 else { throw BenchError("\(name) does not end: \(lastWords)") }
      usleep(200)
    }
    let time = Double(nanoseconds() - began) / 1e6
    process = 0
    // The status as from wait(2): the signal, or the exit status one byte higher.
    guard status == 0 || status == signal else { throw BenchError("\(name) ended with \(status): \(lastWords)") }
    return time
  }

  /// Kills the server, unless it does not run.
  func end() { if process > 0 { _ = try? stop(SIGKILL) } }

  /// The end of the log.
  private var lastWords: Substring { ((try? String(contentsOfFile: log, encoding: .utf8)) ?? "").suffix(2_000) }

  // MARK: Questions

  func connect() throws -> Connection { try Connection(to: socket) }

  /// Sends a request without its line feed on a new connection.
  ///
  /// - Returns: the reply with its rows.
  @discardableResult
  func ask(_ request: String) throws -> String { try connect().ask(request) }

  // MARK: Figures of the process

  /// Returns the time for which the server's threads have run, in microseconds.
  func processorTime() throws -> Double {
    try threads("schedstat").reduce(0) { $0 + (Double($1.split(separator: " ")[0]) ?? 0) / 1e3 }
  }

  /// Returns how often the server's threads have waited for something.
  func wakeups() throws -> Double {
    try threads("status").reduce(0) { $0 + (Self.field("voluntary_ctxt_switches", of: $1) ?? 0) }
  }

  /// Returns the content of a file of each thread (proc(5)). A thread may end meanwhile.
  private func threads(_ file: String) throws -> [String] {
    let folder = "/proc/\(process)/task"
    return try FileManager.default.contentsOfDirectory(atPath: folder).compactMap {
      try? String(contentsOfFile: "\(folder)/\($0)/\(file)", encoding: .utf8)
    }
  }

  /// Returns a number of kilobytes from `status` or `smaps_rollup` (proc(5)), in megabytes.
  func memory(_ field: String, in file: String = "status") throws -> Double {
    let text = try String(contentsOfFile: "/proc/\(process)/\(file)", encoding: .utf8)
    guard let kibibytes = Self.field(field, of: text) else {
      throw BenchError("there is no \(field) in /proc/\(process)/\(file)")
    }
    return kibibytes * 1_024 / 1e6
  }

  private static func field(_ name: String, of text: String) -> Double? {
    let line = text.split(separator: "\n").first { $0.hasPrefix("\(name):") }
    return line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Double($0) }
  }
}

/// The processors on which a client and the servers run.
enum Placement {
  /// Client and server on one processor.
  case together
  /// The client and the server's first thread, which serves, on one processor. Other threads of the server anywhere.
  case served
  /// The client on one processor, the server on the others.
  case apart
  /// Client and server on any processor that the kernel chooses.
  case anywhere

  /// The processor that a client may have alone, as taskset(1) takes it.
  static let first = "0"
  private static var all: String { "0-\(Machine.processors - 1)" }
  /// All other processors. On a machine with one processor, that processor.
  static var others: String { Machine.processors > 1 ? "1-\(Machine.processors - 1)" : first }

  /// Moves the servers and the first thread of this program.
  func apply(to servers: [MeasuredServer]) throws {
    let (asking, serving) =
      switch self {
      case .together: (Self.first, Self.first)
      case .served: (Self.first, Self.all)
      case .apart: (Self.first, Self.others)
      case .anywhere: (Self.all, Self.all)
      }
    try Self.pinSelf(to: asking)
    for server in servers {
      try Self.run(["/usr/bin/taskset", "--all-tasks", "--cpu-list", "--pid", serving, "\(server.process)"])
      if self == .served { try Self.run(["/usr/bin/taskset", "--cpu-list", "--pid", Self.first, "\(server.process)"]) }
    }
  }

  /// Moves the first thread of this program.
  static func pinSelf(to processors: String) throws {
    try run(["/usr/bin/taskset", "--cpu-list", "--pid", processors, "\(getpid())"])
  }

  /// Runs a command that must succeed.
  static func run(_ command: [String]) throws {
    let deadline = Clock.monotonicMicroseconds + 180_000_000
    let outcome = try ChildProcess.run(command, reading: .standardError, until: deadline)
    guard outcome.status == 0 else {
      throw BenchError("\(command.joined(separator: " ")): \(String(decoding: outcome.output, as: UTF8.self))")
    }
  }
}
