import CBench
import Foundation
import LinuxSystem

/// A server with its own socket, log and state.
final class MeasuredServer {
  /// The name in the report.
  let name: String
  /// The path of the socket.
  let socket: String
  /// The folder for everything that the server writes.
  let folder: URL
  /// The program and its arguments.
  let arguments: [String]
  /// The content of the configuration file.
  let configuration: String
  /// The protocol of the server.
  let language: Language
  /// The question that shows whether the server runs.
  let greeting: Question
  private let guardian: Guardian
  /// The process ID. 0 while the server does not run.
  private(set) var process: Int32 = 0
  /// The process IDs of the server and of the processes that it has started itself.
  private(set) var processes: [Int32] = []
  private var log: String { folder.appending(path: "log").path }

  /// Creates the folder of a server. Nothing runs before ``start(asking:)``.
  ///
  /// - Parameters:
  ///   - configuration: returns the content of the configuration for a folder.
  ///   - arguments: returns the program and its arguments for a folder.
  init(
    _ name: String, _ language: Language, guardian: Guardian, greeting: Question,
    configuration: (URL) -> String = { _ in "" }, arguments: (URL) -> [String]
  ) throws {
    self.name = name
    self.guardian = guardian
    self.language = language
    self.greeting = greeting
    // The path of a socket must be short.
    folder = guardian.folder.appending(path: "\(guardian.next())")
    socket = Self.socket(in: folder)
    self.configuration = configuration(folder)
    self.arguments = arguments(folder)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    try Data(self.configuration.utf8).write(to: Self.configurationFile(in: folder))
  }

  /// Returns the socket of a server with this folder.
  static func socket(in folder: URL) -> String { folder.appending(path: "socket").path }

  /// Returns the configuration file of a server with this folder.
  static func configurationFile(in folder: URL) -> URL { folder.appending(path: "configuration") }

  /// Starts the server and waits until it answers.
  ///
  /// - Returns: the time from before the start of the program to the answer, in milliseconds.
  @discardableResult
  func start(asking question: Question? = nil) throws -> Double {
    try Placement.anywhere.apply(to: [])
    guardian.note(self)
    let generator = try Generator(question ?? greeting, of: self, connections: 0)
    do {
      let started = try generator.start(arguments, log: log)
      process = started.process
      processes = [process] + (language == .dbus ? Self.children(of: process) : [])
      try guardian.watch(process)
      return started.milliseconds
    } catch { throw Failure("\(error): \(lastWords)") }
  }

  /// Stops the server as the service manager does, and waits for its exit.
  func stop() throws { _ = try timedStop() }

  /// Stops the server as ``stop()`` does.
  ///
  /// - Returns: the time from the signal to the exit, in milliseconds.
  func timedStop() throws -> Double {
    var status: Int32 = 0
    let began = ContinuousClock.now
    try succeed("ending \(name)") { unsafe bench_stop(process, SIGTERM, &status) }
    let time = (ContinuousClock.now - began).microseconds / 1e3
    // The status as from wait(2): the signal, or the exit status one byte higher.
    guard status == 0 || status == SIGTERM else { throw Failure("\(name) ended with \(status): \(lastWords)") }
    process = 0
    processes = []
    return time
  }

  /// Returns the children of a process. In proc(5) the parent is the second field after the name, which
  /// is in parentheses.
  private static func children(of parent: Int32) -> [Int32] {
    let all = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
    return all.compactMap { Int32($0) }.filter { process in
      let text = (try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)) ?? ""
      let fields = text.split(separator: ")").last?.split(separator: " ") ?? []
      return fields.count > 1 && fields[1] == "\(parent)"
    }
  }

  /// Opens a new connection.
  func connect() throws -> Connection { try Connection(to: socket) }

  /// Returns the time for which the server's threads have run, in microseconds.
  func processorTime() throws -> Double {
    try processes.reduce(0) { sum, process in
      var nanoseconds: UInt64 = 0
      try succeed("the processor time of \(name)") { unsafe bench_processor_time(process, &nanoseconds) }
      return sum + Double(nanoseconds) / 1e3
    }
  }

  /// Returns the peak memory since the start (`VmHWM`, proc(5)), in bytes.
  func peakMemory() throws -> Int { try memory("VmHWM", in: "status") }

  /// Returns the server's proportional share of all its mapped memory, in bytes.
  func proportionalMemory() throws -> Int { try memory("Pss", in: "smaps_rollup") }

  /// Returns the server's private memory that was written to, in bytes.
  func privateMemory() throws -> Int { try memory("Private_Dirty", in: "smaps_rollup") }

  private func memory(_ field: String, in file: String) throws -> Int {
    let text = try String(contentsOfFile: "/proc/\(process)/\(file)", encoding: .utf8)
    let line = text.split(separator: "\n").first { $0.hasPrefix("\(field):") }
    guard let number = line?.split(whereSeparator: \.isWhitespace).dropFirst().first, let kibibytes = Int(number) else {
      throw Failure("there is no \(field) in /proc/\(process)/\(file)")
    }
    return kibibytes * 1_024
  }

  /// The end of the log.
  private var lastWords: Substring { ((try? String(contentsOfFile: log, encoding: .utf8)) ?? "").suffix(2_000) }
}

/// The CPUs on which a client and the servers run.
enum Placement {
  /// Client and server on one CPU.
  case together
  /// The client and the server's first thread, which serves, on one CPU. Other threads of the server are on any CPU.
  case served
  /// The client on one CPU, the server on the others.
  case apart
  /// Client and server on any CPU that the kernel chooses.
  case anywhere

  /// All CPUs, as a mask.
  private static var all: UInt64 {
    let processors = min(64, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
    return processors == 64 ? .max : 1 << UInt64(processors) - 1
  }
  /// All CPUs except CPU 0, which a client may have alone, as a mask. On a machine with one CPU, that CPU.
  static var others: UInt64 { all > 1 ? all & ~1 : all }

  /// Moves the servers and the calling thread.
  func apply(to servers: [MeasuredServer]) throws {
    let all = Self.all
    let masks: (asking: UInt64, serving: UInt64) =
      switch self {
      case .together: (1, 1)
      case .served: (1, all)
      case .apart: (1, Self.others)
      case .anywhere: (all, all)
      }
    try succeed("choosing a processor") { bench_pin_self(masks.asking) }
    for server in servers {
      try succeed("choosing a processor for \(server.name)") {
        for process in server.processes {
          let error = bench_pin_process(process, masks.serving)
          guard error == 0 else { return error }
        }
        return self == .served ? bench_pin_thread(server.process, 1) : 0
      }
    }
  }
}
