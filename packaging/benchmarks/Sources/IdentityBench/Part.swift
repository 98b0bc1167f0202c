import Foundation
import LinuxSystem

/// What this program is started as by itself: one of the users of a daemon that is measured.
///
///     IdentityBench as-user UID ask SOCKET COUNT REQUEST
///     IdentityBench as-user UID attack SOCKET KIND
struct Part {
  private let user: UInt32
  private let act: (String) throws -> Void
  private let socket: String

  /// Reads the arguments; nil where they are those of somebody else.
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

  /// Becomes that user, and does what it does.
  func play() throws {
    guard setgroups(0, nil) == 0, setgid(user) == 0, setuid(user) == 0 else {
      throw Failure("cannot become user \(user): \(unsafe String(cString: strerror(errno)))")
    }
    try act(socket)
  }

  /// A process that plays a part.
  ///
  /// Who gets a processor is the kernel's to decide, not the daemon's. So the one that takes the time gets it at once
  /// (SCHED_FIFO), and the one that attacks has another processor, beside the daemon, as far as the daemon leaves it
  /// (SCHED_IDLE): that is enough to keep the daemon busy.
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

/// A user that asks now and then, and takes the time.
struct QuietUser {
  /// How long it rests between two requests, in microseconds: a daemon that is never idle would flatter the quiet side.
  private static let rest: UInt32 = 300

  private let connection: Connection
  private let request: [UInt8]

  /// Connects.
  init(socket: String, request: String) throws {
    connection = try Connection(to: socket)
    self.request = Array("\(request)\n".utf8)
  }

  /// Writes how long each answer took, in microseconds, a line each.
  ///
  /// - Throws: where a single one is refused.
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
