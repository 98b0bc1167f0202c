import CBench
import Foundation
import LinuxSystem

/// A server with a socket, a log and a state of its own.
final class MeasuredServer {
  /// What it is called in the report.
  let name: String
  /// Where it listens.
  let socket: String
  /// Whatever it writes is in here.
  let folder: URL
  /// How it is started.
  let arguments: [String]
  /// What else it is told, in a file.
  let configuration: String
  /// What it understands.
  let language: Language
  /// What it is asked to see whether it runs.
  let greeting: Question
  private let guardian: Guardian
  /// Its number while it runs.
  private(set) var process: Int32 = 0
  /// Its own, and those of the processes that it has started by itself.
  private(set) var processes: [Int32] = []
  private var log: String { folder.appending(path: "log").path }

  /// Makes its folder. Nothing runs before ``start(asking:)``.
  ///
  /// - Parameters:
  ///   - configuration: what stands in its configuration, from its folder.
  ///   - arguments: the program and its arguments, from its folder.
  init(
    _ name: String, _ language: Language, guardian: Guardian, greeting: Question,
    configuration: (URL) -> String = { _ in "" }, arguments: (URL) -> [String]
  ) throws {
    self.name = name
    self.guardian = guardian
    self.language = language
    self.greeting = greeting
    // The path of a socket is short.
    folder = guardian.folder.appending(path: "\(guardian.next())")
    socket = Self.socket(in: folder)
    self.configuration = configuration(folder)
    self.arguments = arguments(folder)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    try Data(self.configuration.utf8).write(to: Self.configurationFile(in: folder))
  }

  /// Where a server listens whose folder is this.
  static func socket(in folder: URL) -> String { folder.appending(path: "socket").path }

  /// Where its configuration stands.
  static func configurationFile(in folder: URL) -> URL { folder.appending(path: "configuration") }

  /// Starts it, and waits until it answers.
  ///
  /// - Returns: how long that took, from before the program's start to the answer, in milliseconds.
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

  /// Ends it as the service manager does, and waits for that.
  func stop() throws {
    var status: Int32 = 0
    try succeed("ending \(name)") { unsafe bench_stop(process, SIGTERM, &status) }
    // As wait(2) has it: the signal, or the status of the exit one byte further.
    guard status == 0 || status == SIGTERM else { throw Failure("\(name) ended with \(status): \(lastWords)") }
    process = 0
    processes = []
  }

  /// Those whose parent it is (proc(5): the second field behind the name, which stands in brackets).
  private static func children(of parent: Int32) -> [Int32] {
    let all = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
    return all.compactMap { Int32($0) }.filter { process in
      let text = (try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)) ?? ""
      let fields = text.split(separator: ")").last?.split(separator: " ") ?? []
      return fields.count > 1 && fields[1] == "\(parent)"
    }
  }

  /// A fresh connection.
  func connect() throws -> Connection { try Connection(to: socket) }

  /// How long its threads have run, in microseconds.
  func processorTime() throws -> Double {
    try processes.reduce(0) { sum, process in
      var nanoseconds: UInt64 = 0
      try succeed("the processor time of \(name)") { unsafe bench_processor_time(process, &nanoseconds) }
      return sum + Double(nanoseconds) / 1e3
    }
  }

  /// The most memory that it ever had since its start (`VmHWM`, proc(5)), in bytes.
  func peakMemory() throws -> Int { try memory("VmHWM", in: "status") }

  /// The memory it has: its share of all it maps, in bytes.
  func proportionalMemory() throws -> Int { try memory("Pss", in: "smaps_rollup") }

  /// The memory that is its own and was written to, in bytes.
  func privateMemory() throws -> Int { try memory("Private_Dirty", in: "smaps_rollup") }

  private func memory(_ field: String, in file: String) throws -> Int {
    let text = try String(contentsOfFile: "/proc/\(process)/\(file)", encoding: .utf8)
    let line = text.split(separator: "\n").first { $0.hasPrefix("\(field):") }
    guard let number = line?.split(whereSeparator: \.isWhitespace).dropFirst().first, let kibibytes = Int(number) else {
      throw Failure("there is no \(field) in /proc/\(process)/\(file)")
    }
    return kibibytes * 1_024
  }

  /// The end of its log.
  private var lastWords: Substring { ((try? String(contentsOfFile: log, encoding: .utf8)) ?? "").suffix(2_000) }
}

/// On which processors a server and the one that asks it run.
enum Placement {
  /// Both on one.
  case together
  /// The one that asks and the first thread of the server, which serves, on one; other threads of the server anywhere.
  case served
  /// The one that asks on one, the server on the others.
  case apart
  /// Wherever the kernel puts them.
  case anywhere

  /// All processors, as a mask.
  private static var all: UInt64 {
    let processors = min(64, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
    return processors == 64 ? .max : 1 << UInt64(processors) - 1
  }
  /// Those on which nobody asks who is alone on one, as a mask; where there is but one, that.
  static var others: UInt64 { all > 1 ? all & ~1 : all }

  /// Moves the servers, and the thread that calls.
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
