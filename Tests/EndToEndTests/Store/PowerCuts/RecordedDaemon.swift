import Foundation
import TestSupport

/// A daemon whose system calls are recorded, and a client that sends it requests.
final class RecordedDaemon {
  /// The durable effect that an acknowledged request must have.
  struct Effect {
    /// The words of its event. `REPLY` stands for the first word of the answer after `OK`.
    let words: [String]
    /// The service and account of an item, and its secret as Base64 text.
    let secret: (name: String, text: String)?
  }

  let daemon: DaemonUnderTest
  private(set) var recording: StorageRecording
  private(set) var effects: [String: Effect] = [:]
  private var client: Client?
  private var subscriber: Client?
  private var runs = 0
  /// The process ID of the daemon, which is the child of strace.
  private var process: Int32?

  /// - Parameter initial: the files in the state directory at first. If there are none, the daemon makes a first start.
  init(_ initial: [String: Data] = [:]) throws {
    // In memory: the recorded calls show what is synced, so that no disk is needed.
    daemon = try DaemonUnderTest(inMemory: true)
    recording = StorageRecording(state: daemon.state, initial: initial)
    if !initial.isEmpty { try daemon.fillState(initial) }
  }

  // The daemon would outlive its strace.
  deinit { if let process { kill(process, SIGKILL) } }

  private var trace: URL { daemon.folder.appending(path: "trace-\(runs)") }

  /// Starts the daemon, and subscribes to all events.
  func start(injecting fault: String? = nil, configuration: String? = "[Store]\nCheckpointSize=64K\n") throws {
    runs += 1
    try daemon.start(through: StorageRecording.tracer(trace, injecting: fault), configuration: configuration)
    client = try daemon.client()
    process = try client?.statusValue("pid").flatMap(Int32.init)
    subscriber = try daemon.client()
    guard try subscriber?.subscribe().last?.hasPrefix("OK") == true else { throw Failure("no events are told") }
  }

  /// Ends the daemon with a signal, and appends its trace to the recording.
  func end(with signal: Int32 = SIGTERM) throws {
    // Once this answer is received, the answer before it is in the trace.
    guard let process, try ask("ping") == "OK" else { throw Failure("no process") }
    kill(process, signal)
    // This process is strace, which ends with the daemon.
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

  /// Sends a request that makes a change. Repeats the request while the store cannot be written.
  ///
  /// - Parameter event: words that occur in the event of this change, and together in no other event.
  func change(_ request: String, _ event: String, secret: (name: String, text: String)? = nil) throws {
    effects[request] = Effect(words: event.split(separator: " ").map(String.init), secret: secret)
    let deadline = Date(timeIntervalSinceNow: patience)
    var answer = try ask(request)
    // If the disk fails, the daemon rewrites the store at most once a second.
    while answer.hasPrefix("ERR read-only ") || answer.hasPrefix("ERR unknown "), Date() < deadline {
      usleep(50_000)
      answer = try ask(request)
    }
    guard answer.hasPrefix("OK") else { throw Failure("\(request): \(answer)") }
  }
}

extension DaemonUnderTest {
  /// Writes files into the state directory before the first start.
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
