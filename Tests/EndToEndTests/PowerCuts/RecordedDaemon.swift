import Foundation
import TestSupport

/// A daemon whose system calls are recorded, and the client that has it work.
final class RecordedDaemon {
  /// What an acknowledged request has to leave behind.
  struct Effect {
    /// The words of its event; REPLY stands for the first word of the answer.
    let words: [String]
    /// The name of an item and its secret.
    let secret: (name: String, text: String)?
  }

  let daemon: DaemonUnderTest
  private(set) var recording: StorageRecording
  private(set) var effects: [String: Effect] = [:]
  private var client: Client?
  private var subscriber: Client?
  private var runs = 0
  /// The daemon, which is the child of strace.
  private var process: Int32?

  /// - Parameter initial: what is in the state directory at first; nothing makes the first start the daemon's own.
  init(_ initial: [String: Data] = [:]) throws {
    // What is synced is known from the calls, not from the disk.
    daemon = try DaemonUnderTest(inMemory: true)
    recording = StorageRecording(state: daemon.state, initial: initial)
    if !initial.isEmpty { try daemon.fillState(initial) }
  }

  // A daemon would outlive its strace.
  deinit { if let process { kill(process, SIGKILL) } }

  private var trace: URL { daemon.folder.appending(path: "trace-\(runs)") }

  /// Starts it, with a subscriber of every event.
  func start(injecting fault: String? = nil, configuration: String? = "[Store]\nCheckpointSize=64K\n") throws {
    runs += 1
    try daemon.start(through: StorageRecording.tracer(trace, injecting: fault), configuration: configuration)
    client = try daemon.client()
    process = try client?.statusValue("pid").flatMap(Int32.init)
    subscriber = try daemon.client()
    guard try subscriber?.subscribe().last?.hasPrefix("OK") == true else { throw Failure("no events are told") }
  }

  /// Ends it with a signal, and takes in what it did.
  func end(with signal: Int32 = SIGTERM) throws {
    // Behind this answer the one before it is in the trace.
    guard let process, try ask("ping") == "OK" else { throw Failure("no process") }
    kill(process, signal)
    // It ends with the daemon.
    daemon.process.waitUntilExit()
    self.process = nil
    client = nil
    subscriber = nil
    try recording.append(trace)
    try FileManager.default.removeItem(at: trace)
  }

  /// Sends a request and returns the last line of its answer.
  @discardableResult
  func ask(_ request: String) throws -> String { try client?.ask(request).last ?? "" }

  /// Sends a request that changes something.
  ///
  /// - Parameter event: the words of the event that tells of it, and of no other one.
  func change(_ request: String, _ event: String, secret: (name: String, text: String)? = nil) throws {
    effects[request] = Effect(words: event.split(separator: " ").map(String.init), secret: secret)
    let deadline = Date(timeIntervalSinceNow: patience)
    var answer = try ask(request)
    // On a disk that fails, a store is written anew at most once a second.
    while answer.hasPrefix("ERR read-only ") || answer.hasPrefix("ERR unknown "), Date() < deadline {
      usleep(50_000)
      answer = try ask(request)
    }
    guard answer.hasPrefix("OK") else { throw Failure("\(request): \(answer)") }
  }
}

extension DaemonUnderTest {
  /// Puts these files into the state directory before the first start.
  func fillState(_ files: [String: Data]) throws {
    let (manager, folder) = (FileManager.default, state)
    try manager.createDirectory(
      at: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    for (name, content) in files {
      let file = folder.appending(path: name)
      try content.write(to: file)
      try manager.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file.path)
    }
  }
}
