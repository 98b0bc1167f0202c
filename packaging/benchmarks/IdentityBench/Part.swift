import Foundation
import LinuxSystem

/// A user of a measured daemon. The program starts itself for each such part.
///
///     IdentityBench as-user UID ask SOCKET COUNT REQUEST
///     IdentityBench as-user UID attack SOCKET KIND
struct Part {
  private let user: UInt32
  private let act: (String) throws -> Void
  private let socket: String

  /// Parses the arguments. Nil if they are not those of a part.
  init?(_ arguments: [String]) throws {
    guard arguments.first == "as-user" else { return nil }
    guard arguments.count >= 5, let user = UInt32(arguments[1]) else { throw Failure("\(arguments)") }
    self.user = user
    socket = arguments[3]
    switch (arguments[2], arguments.count) {
    case ("ask", 6):
      guard let count = Int(arguments[4]) else { throw Failure("\(arguments)") }
      let request = arguments[5]
      act = { try QuietUser(socket: $0, request: request).ask(count) }
    case ("attack", 5):
      guard let kind = Attack.Kind(rawValue: arguments[4]) else { throw Failure("\(arguments)") }
      act = { try Attack(kind, socket: $0).run() }
    default: throw Failure("\(arguments)")
    }
  }

  /// Switches to the user and plays its part.
  func play() throws {
    guard setgroups(0, nil) == 0, setgid(user) == 0, setuid(user) == 0 else {
      throw Failure("cannot become user \(user): \(unsafe String(cString: strerror(errno)))")
    }
    try act(socket)
  }

  /// Returns a process that plays a part.
  ///
  /// The kernel, not the daemon, schedules processes. So the measuring process gets its CPU at once (SCHED_FIFO). An
  /// attacking process is on another CPU, together with the daemon, and gets the time that the daemon leaves
  /// (SCHED_IDLE). That time is enough to keep the daemon busy.
  static func process(as user: UInt32, _ words: String...) -> Process {
    let isTimed = words.first == "ask"
    let processors = sysconf(Int32(_SC_NPROCESSORS_ONLN))
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/chrt")
    process.arguments =
      (isTimed ? ["--fifo", "1"] : ["--idle", "0"])
      + (processors > 1 ? ["taskset", "--cpu-list", isTimed ? "0" : "1-\(processors - 1)"] : [])
      + [URL(filePath: "/proc/self/exe").resolvingSymlinksInPath().path, "as-user", "\(user)"] + words
    process.standardInput = FileHandle.nullDevice
    return process
  }
}

/// A user that sends a request now and then and measures the time.
struct QuietUser {
  /// The pause between two requests, in microseconds. Without it the daemon would never be idle, and the quiet side
  /// would look too good.
  private static let rest: UInt32 = 300

  private let connection: Connection
  private let request: [UInt8]

  /// Connects to a daemon.
  init(socket: String, request: String) throws {
    connection = try Connection(to: socket)
    self.request = Array("\(request)\n".utf8)
  }

  /// Writes the time of each answer, in microseconds, one per line.
  ///
  /// - Throws: if any request is refused.
  func ask(_ count: Int) throws {
    var times: [Double] = []
    for number in -50..<count {
      usleep(Self.rest)
      let time = try connection.time(request, replies: 1)
      try connection.check([Array("OK ".utf8)])
      if number >= 0 { times.append(time) }
    }
    let text = times.map { "\($0)\n" }.joined()
    guard StandardStream.output.write(text) else { throw Failure("standard output takes nothing") }
  }
}
