import Foundation
import LinuxSystem

/// A process beside the measuring one, which this program starts with arguments for itself.
///
///     IdentityBench part ask COUNT REQUEST SOCKET…
///     IdentityBench part attack KIND SOCKET
struct Part {
  /// Plays the part.
  let play: () throws -> Void

  /// Parses the arguments. Nil if they are not those of a part.
  init?(_ arguments: [String]) throws {
    guard arguments.first == "part" else { return nil }
    guard arguments.count >= 4 else { throw BenchError("\(arguments)") }
    if let count = Int(arguments[2]) {
      play = { try QuietUser(sockets: arguments.dropFirst(4), request: arguments[3]).ask(count) }
    } else if let kind = Attack.Kind(rawValue: arguments[2]) {
      play = { try Attack(kind, socket: arguments[3]).run() }
    } else {
      throw BenchError("\(arguments)")
    }
  }

  /// Returns a process that plays a part as a user.
  ///
  /// The kernel, not the daemon, schedules processes. So the measuring process gets its processor at once (SCHED_FIFO).
  /// An attacking process is on another processor, together with the daemon, and gets the time that the daemon leaves
  /// (SCHED_IDLE). That time is enough to keep the daemon busy.
  static func process(as user: UInt32, _ words: [String]) -> Process {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/chrt")
    let place =
      words[0] == "ask"
      ? ["--fifo", "1", "taskset", "--cpu-list", Placement.first]
      : ["--idle", "0", "taskset", "--cpu-list", Placement.others]
    let user = ["setpriv", "--reuid=\(user)", "--regid=\(user)", "--clear-groups"]
    process.arguments = place + user + [MeasuredServer.own.path, "part"] + words
    process.standardInput = FileHandle.nullDevice
    return process
  }
}

/// A user that sends a request now and then and measures the time.
struct QuietUser {
  /// The pause between two requests, in microseconds. Without it the daemon would never be idle, and the quiet side
  /// would look too good.
  static let rest: UInt32 = 300

  private let connections: [Connection]
  private let request: [UInt8]

  /// Connects to daemons.
  init(sockets: some Sequence<String>, request: String) throws {
    connections = try sockets.map { try Connection(to: $0) }
    self.request = Array("\(request)\n".utf8)
  }

  /// Asks the daemons in turn, in the one order and in the other, so that other load on the machine affects all of them.
  /// Writes the place of the daemon and the time of each answer, in microseconds, one per line.
  ///
  /// - Throws: if any request is refused.
  fileprivate func ask(_ count: Int) throws {
    var text = ""
    for number in -50..<count {
      for place in number.isMultiple(of: 2) ? Array(connections.indices) : connections.indices.reversed() {
        usleep(Self.rest)
        let time = try connections[place].time(request)
        try connections[place].check(["OK "])
        if number >= 0 { text += "\(place) \(time)\n" }
      }
    }
    guard StandardStream.output.write(text) else { throw BenchError("standard output takes nothing") }
  }

  /// Has a user ask daemons.
  ///
  /// - Returns: the times of each daemon, in microseconds.
  static func times(_ user: UInt32, _ count: Int, _ request: String, at servers: [MeasuredServer]) throws -> [[Double]]
  {
    let process = Part.process(as: user, ["ask", "\(count)", request] + servers.map(\.socket))
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let text = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
    process.waitUntilExit()
    var times: [[Double]] = servers.map { _ in [] }
    for line in text.split(separator: "\n") {
      let words = line.split(separator: " ")
      guard let place = Int(words[0]), let time = Double(words[1]) else { throw BenchError("\(line)") }
      times[place].append(time)
    }
    guard process.terminationStatus == 0, times.allSatisfy({ $0.count == count }) else {
      throw BenchError("the quiet user was refused")
    }
    return times
  }
}
