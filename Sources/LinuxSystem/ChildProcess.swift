import CLinux
import Glibc

/// A program that is run for its output, within a time limit (posix_spawn(3)).
package enum ChildProcess {
  /// The result of a program that has ended.
  package struct Outcome: Equatable, Sendable {
    /// The exit status, or 128 plus the number of the signal that ended the program.
    package let status: Int32
    /// The bytes that the program wrote to standard output, or to standard error if that was asked for.
    package let output: [UInt8]

    package init(status: Int32, output: [UInt8]) {
      self.status = status
      self.output = output
    }
  }

  /// The reason why there is no outcome.
  package enum Failure: Error, Equatable, CustomStringConvertible {
    /// The program took too long and was killed.
    case timeUp
    /// The program wrote more than the limit and was killed.
    case tooLong
    /// The program could not be started, or its output could not be read.
    case system(SystemError)

    /// The reason in words.
    package var description: String {
      switch self {
      case .timeUp: "it did not end in time"
      case .tooLong: "its output is too long"
      case .system(let error): error.description
      }
    }
  }

  /// The environment of every program. But for the variables that a caller names, the caller's environment affects neither
  /// the program's actions nor the language of its output.
  private static let environment = ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8"]

  /// A stream of the program, whose bytes are its output. The other one is discarded.
  package enum Stream: Int32, Sendable {
    case standardOutput = 1
    case standardError = 2
  }

  /// Runs a program without a shell and without input.
  ///
  /// - Parameters:
  ///   - command: the absolute path of the program, followed by its arguments.
  ///   - stream: the stream to read.
  ///   - names: the variables that the program takes over from this process.
  ///   - deadline: a time of ``Clock/monotonicMicroseconds``.
  ///   - limit: the longest output that is accepted, in bytes.
  package static func run(
    _ command: [String], reading stream: Stream = .standardOutput, passing names: [String] = [], until deadline: UInt64,
    limit: Int = 65_536
  ) throws(Failure) -> Outcome {
    do {
      let variables = names.compactMap { name in Environment[name].map { "\(name)=\($0)" } }
      let running = try start(command, environment + variables, reading: stream)
      do {
        let bytes = try read(running.output, until: deadline, limit: limit)
        return Outcome(status: try wait(for: running.process, until: deadline), output: bytes)
      } catch {
        kill(running.process, SIGKILL)
        _ = try? reap(running.process, flags: 0)
        throw error
      }
    } catch let failure as Failure {
      throw failure
    } catch let error as SystemError {
      throw .system(error)
    } catch {
      throw .timeUp
    }
  }

  private struct Running: ~Copyable {
    let process: pid_t
    let output: Descriptor
  }

  private static func start(
    _ command: [String], _ environment: [String], reading stream: Stream
  ) throws(SystemError) -> Running {
    var (reading, writing) = (Int32(-1), Int32(-1))
    try system("pipe") { unsafe clinux_pipe(&reading, &writing) }
    let output = Descriptor(adopting: reading)
    let input = Descriptor(adopting: writing)
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
    unsafe posix_spawn_file_actions_adddup2(&actions, input.number, stream.rawValue)
    // After the copy, because the pipe has the number of the other stream if this process has closed it.
    let other = stream == .standardOutput ? STDERR_FILENO : STDOUT_FILENO
    unsafe posix_spawn_file_actions_addopen(&actions, other, "/dev/null", O_WRONLY, 0)
    // This process may have inherited descriptors that the child must not get.
    unsafe clinux_close_from_in_child(&actions, STDERR_FILENO + 1)
    var attributes = posix_spawnattr_t()
    unsafe posix_spawnattr_init(&attributes)
    defer { unsafe posix_spawnattr_destroy(&attributes) }
    // The usual signals have to end the child, even if this process blocks them.
    var none = sigset_t()
    unsafe sigemptyset(&none)
    unsafe posix_spawnattr_setsigmask(&attributes, &none)
    unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
    var process: pid_t = 0
    var code: Int32 = 0
    unsafe withCStrings(command) { arguments in
      unsafe withCStrings(environment) { variables in
        guard let path = unsafe arguments[0] else { return }
        code = unsafe posix_spawn(&process, path, &actions, &attributes, arguments, variables)
      }
    }
    _ = consume input
    guard code == 0, process > 0 else { throw SystemError(call: "run \(command.first ?? "nothing")", code: code) }
    return Running(process: process, output: output)
  }

  private static func read(_ output: borrowing Descriptor, until deadline: UInt64, limit: Int) throws -> [UInt8] {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4_096)
    while true {
      guard try TimedWait.wait(for: output.number, until: deadline) == .readable else { throw Failure.timeUp }
      guard let count = try output.read(into: &chunk) else { continue }
      if count == 0 { return bytes }
      bytes += chunk[..<count]
      guard bytes.count <= limit else { throw Failure.tooLong }
    }
  }

  /// Waits for the end of a process that has closed its output already, and so is about to end.
  private static func wait(for process: pid_t, until deadline: UInt64) throws -> Int32 {
    while true {
      if let status = try reap(process, flags: WNOHANG) { return status }
      let now = Clock.monotonicMicroseconds
      guard now < deadline else { throw Failure.timeUp }
      _ = try TimedWait.wait(for: nil, until: min(deadline, now + 5_000))
    }
  }

  /// Collects the exit status of a process.
  ///
  /// - Returns: nil if the process is still running.
  private static func reap(_ process: pid_t, flags: Int32) throws(SystemError) -> Int32? {
    var status: Int32 = 0
    let found = try system("waitpid") { unsafe waitpid(process, &status, flags) }
    guard found != 0 else { return nil }
    // By wait(2), the low seven bits are the signal, and the next byte is the exit status.
    return status & 0x7f == 0 ? status >> 8 & 0xff : 128 + status & 0x7f
  }
}
