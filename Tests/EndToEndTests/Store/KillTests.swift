import Foundation
import LinuxSystem
import TestSupport
import Testing

/// Many kills of the daemon under load. Every acknowledged change survives, and the device identifier stays the same.
@Suite(.enabled(if: isRoot, "it names the apps of several users"), .serialized, .tags(.trial)) struct KillTests {
  /// A daemon that is started and killed directly, without a wrapper, on one state directory.
  private final class KilledDaemon {
    let folder: DaemonUnderTest
    private let program: String
    private var process: pid_t = 0

    init() throws {
      // A kill does not affect data that the kernel holds, so the file system may be in memory.
      folder = try DaemonUnderTest(inMemory: true)
      try folder.configure("[Store]\nCheckpointSize=256K\n")
      // The release build starts faster.
      program = DaemonUnderTest.released.appending(path: "identityd").path
    }

    deinit { kill() }

    /// Starts the daemon, and returns a client once the daemon answers.
    func start() throws -> Client {
      let words = [
        program, "--state-directory", folder.state.path, "--socket", folder.socket, "--config",
        folder.configurationFile.path,
      ]
      var arguments = unsafe words.map { unsafe strdup($0) } + [nil]
      defer { for index in unsafe arguments.indices { unsafe free(arguments[index]) } }
      var actions = unsafe posix_spawn_file_actions_t()
      unsafe posix_spawn_file_actions_init(&actions)
      defer { unsafe posix_spawn_file_actions_destroy(&actions) }
      unsafe posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
      for number: Int32 in 1...2 {
        unsafe posix_spawn_file_actions_addopen(
          &actions, number, folder.folder.appending(path: "log").path, O_WRONLY | O_CREAT | O_APPEND, 0o600)
      }
      // Test threads block all signals, and a child inherits the signal mask.
      var attributes = posix_spawnattr_t()
      unsafe posix_spawnattr_init(&attributes)
      defer { unsafe posix_spawnattr_destroy(&attributes) }
      var none = sigset_t()
      unsafe sigemptyset(&none)
      unsafe posix_spawnattr_setsigmask(&attributes, &none)
      unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
      let code = unsafe posix_spawn(&process, program, &actions, &attributes, &arguments, environ)
      guard code == 0 else { throw Failure("\(program) does not start: \(code)") }
      let deadline = Date(timeIntervalSinceNow: patience)
      while Date() < deadline {
        if let client = try? Client(folder.socket), (try? client.ask("ping")) == ["OK"] { return client }
        var status: Int32 = 0
        if unsafe waitpid(process, &status, WNOHANG) != 0 {
          process = 0
          throw Failure("the daemon ended with \(status): \(folder.log)")
        }
        usleep(500)
      }
      throw Failure("the daemon does not answer: \(folder.log)")
    }

    func kill() {
      guard process != 0 else { return }
      Glibc.kill(process, SIGKILL)
      var status: Int32 = 0
      while unsafe waitpid(process, &status, 0) == -1, errno == EINTR {}
      process = 0
    }
  }

  /// A client that puts its item again and again until the connection ends.
  private final class Putting: @unchecked Sendable {
    // Sendable: only the thread uses this state while it runs, except for the count, which the lock guards.
    private(set) var acknowledged = 0
    /// The last number that was sent. The store may have it or not.
    private(set) var sent = 0
    /// The number in the store when the daemon last started.
    private(set) var first = 0
    private(set) var wrong: [String] = []
    let account: String
    private var client: Client?
    private let lock = NSLock()
    private var answers = 0
    private let done = DispatchSemaphore(value: 0)

    init(_ number: Int) { account = "w\(number)" }

    func begin(_ client: Client) {
      self.client = client
      Thread.detachNewThread { [self] in
        // The connection ends when the daemon is killed.
        while let answer = try? put() {
          if answer.hasPrefix("OK ") { acknowledged = sent } else { wrong.append(answer) }
          lock.withLock { answers += 1 }
        }
        done.signal()
      }
    }

    private func put() throws -> String {
      let next = sent + 1
      guard let client else { throw Failure("no connection") }
      try client.send("item put service=kill account=\(account) data=\(pair(next)) label=\(pair(next))\n")
      sent = next
      return try client.answer().last ?? ""
    }

    func wait() { done.wait() }

    /// The number of answers over all runs of the daemon.
    var answerCount: Int { lock.withLock { answers } }

    /// Continues from the number that was found after a kill.
    func resume(at found: Int) { (first, acknowledged, sent) = (found, found, found) }
  }

  /// A client that reads the items of the writers. A value that was read once must never be lost.
  private final class Reading: @unchecked Sendable {
    // Sendable: only the thread uses this state while it runs.
    private(set) var newest: [String: Int] = [:]
    private(set) var wrong: [String] = []
    private var client: Client?
    private let done = DispatchSemaphore(value: 0)

    func begin(_ client: Client, _ accounts: [String]) {
      newest = [:]
      self.client = client
      Thread.detachNewThread { [self] in
        while let account = accounts.randomElement(), let answer = try? read(account) {
          do {
            if answer.hasPrefix("ERR not-found ") { continue }
            let number = try numbered(answer)
            if number < newest[account, default: 0] { wrong.append("\(number) behind \(newest[account, default: 0])") }
            newest[account] = number
          } catch {
            wrong.append("\(error)")
          }
        }
        done.signal()
      }
    }

    private func read(_ account: String) throws -> String {
      guard let client else { throw Failure("no connection") }
      return try client.ask("item read service=kill account=\(account)").last ?? ""
    }

    func wait() { done.wait() }
  }

  private static func number(_ client: Client, _ account: String) throws -> Int {
    let answer = try client.ask("item read service=kill account=\(account)").last ?? ""
    return answer.hasPrefix("ERR not-found ") ? 0 : try numbered(answer)
  }

  @Test func `row 10: kill -9 under load loses no acknowledged change`() throws {
    let rounds = Trial.rounds(500, long: 5_000)
    let daemon = try KilledDaemon()
    let writers = (0..<4).map(Putting.init)
    let readers = (0..<2).map { _ in Reading() }
    var generator = SeededGenerator(10)
    var lost: [String] = []
    var commits = 0
    var client = try daemon.start()
    let device = try client.ask("get device").last?.split(separator: " ").dropFirst().first
    for round in 0..<rounds {
      for writer in writers { writer.begin(try Client(daemon.folder.socket)) }
      for reader in readers { reader.begin(try Client(daemon.folder.socket), writers.map(\.account)) }
      // Waits for a random moment of the work, so that the kills hit different places.
      let wanted = writers.map(\.answerCount).reduce(0, +) + Int.random(in: 0..<8, using: &generator)
      let deadline = Date(timeIntervalSinceNow: patience)
      while writers.map(\.answerCount).reduce(0, +) < wanted, Date() < deadline { usleep(300) }
      usleep(UInt32.random(in: 0..<1_000, using: &generator))
      daemon.kill()
      for writer in writers { writer.wait() }
      for reader in readers { reader.wait() }
      client = try daemon.start()
      for writer in writers {
        let found = try Self.number(client, writer.account)
        let told = max(writer.acknowledged, readers.compactMap { $0.newest[writer.account] }.max() ?? 0)
        if !(told...writer.sent).contains(found) {
          lost.append("round \(round): \(found) instead of \(told)…\(writer.sent)")
        }
        commits += writer.acknowledged - writer.first
        writer.resume(at: found)
      }
      let now = try client.ask("get device").last?.split(separator: " ").dropFirst().first
      if now != device || device == nil { lost.append("round \(round): the device is \(now ?? "none")") }
    }
    #expect(lost == [])
    #expect(writers.flatMap(\.wrong) + readers.flatMap(\.wrong) == [])
    #expect(commits > rounds)
    #expect(try client.statusValue("store") == "ok")
    try Trial("kill -9 under load").report(tried: rounds, lost: lost.count, "\(commits) commits acknowledged")
  }
}

/// Returns the number in the answer to a read of an item stored with ``pair(_:)``. The secret and the label must come
/// from the same commit.
private func numbered(_ answer: String) throws -> Int {
  guard let data = Data(base64Encoded: try readPair(answer)),
    let number = Int(String(decoding: data, as: UTF8.self).dropFirst("number ".count))
  else { throw Failure(answer) }
  return number
}
