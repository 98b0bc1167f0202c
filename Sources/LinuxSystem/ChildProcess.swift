import CLinux
import Glibc

/// A program that is run for what it writes, and for no longer than there is time (posix_spawn(3)).
package enum ChildProcess {
  /// What came of it.
  package struct Outcome: Equatable, Sendable {
    /// Its exit status; 128 and the signal's number where a signal ended it.
    package let status: Int32
    /// What it wrote to standard output.
    package let output: [UInt8]

    /// Puts one together.
    package init(status: Int32, output: [UInt8]) {
      self.status = status
      self.output = output
    }
  }

  /// Why there is no outcome.
  package enum Failure: Error, Equatable, CustomStringConvertible {
    /// It took too long, and was killed.
    case timeUp
    /// It wrote more than was wanted, and was killed.
    case tooLong
    /// It could not be started or read from.
    case system(SystemError)

    /// The cause.
    package var description: String {
      switch self {
      case .timeUp: "it did not end in time"
      case .tooLong: "it wrote too much"
      case .system(let error): error.description
      }
    }
  }

  /// Nothing that the caller's environment says changes what a program does or in which language it answers.
  private static let environment = ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8"]

  /// Runs a program without a shell, with nothing to read, and drops what it writes to standard error.
  ///
  /// - Parameters:
  ///   - command: the absolute path of the program, and its arguments.
  ///   - deadline: a moment of ``Clock/monotonicMicroseconds``.
  ///   - limit: the longest output in bytes.
  package static func run(
    _ command: [String], until deadline: UInt64, limit: Int = 65_536
  ) throws(Failure) -> Outcome {
    do {
      let running = try start(command)
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

  private static func start(_ command: [String]) throws(SystemError) -> Running {
    var (reading, writing) = (Int32(-1), Int32(-1))
    try system("pipe") { unsafe clinux_pipe(&reading, &writing) }
    let output = Descriptor(adopting: reading)
    let input = Descriptor(adopting: writing)
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
    unsafe posix_spawn_file_actions_adddup2(&actions, input.number, STDOUT_FILENO)
    unsafe posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0)
    // Whoever started this program may have left it descriptors that are nobody else's.
    unsafe clinux_close_from_in_child(&actions, STDERR_FILENO + 1)
    var attributes = posix_spawnattr_t()
    unsafe posix_spawnattr_init(&attributes)
    defer { unsafe posix_spawnattr_destroy(&attributes) }
    // It is to end of the signals that end a program, whatever this one blocks.
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

  /// - Returns: nil where it still runs.
  private static func reap(_ process: pid_t, flags: Int32) throws(SystemError) -> Int32? {
    var status: Int32 = 0
    let found = try system("waitpid") { unsafe waitpid(process, &status, flags) }
    guard found != 0 else { return nil }
    // As wait(2) has it: the low seven bits are the signal, the next byte the status.
    return status & 0x7f == 0 ? status >> 8 & 0xff : 128 + status & 0x7f
  }
}
