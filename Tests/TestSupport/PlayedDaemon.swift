package import Foundation
import LinuxSystem

/// A fake daemon: answers with the result of a function and records the requests.
package final class PlayedDaemon {
  /// The reaction to a request.
  package enum Answer {
    case lines(String)
    /// Sends these lines and then closes the connection.
    case lastLines(String)
  }

  package let folder: URL
  package var socket: String { folder.appending(path: "socket").path }
  private let heard = Locked<[String]>([])
  private let served = Locked(0)
  private let isOver = Locked(false)

  /// Listens in a new folder. Serves one connection to its end before the next.
  package init(_ answer: @escaping @Sendable (String) -> Answer) throws {
    folder = FileManager.default.temporaryDirectory.appending(path: "played-\(UUID().uuidString)")
    try FileManager.default.createDirectory(
      at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
    let listener = try UnixSocket.listen(at: folder.appending(path: "socket").path, mode: 0o777, backlog: 5).release()
    Thread.detachNewThread { [heard, served, isOver] in
      let listener = Descriptor(adopting: listener)
      while !isOver.withLock({ $0 }) {
        let deadline = Clock.monotonicMicroseconds + 50_000
        guard (try? TimedWait.wait(for: listener.number, until: deadline)) == .readable,
          let connection = (try? UnixSocket.accept(on: listener)) ?? nil
        else { continue }
        served.withLock { $0 += 1 }
        Self.serve(connection, heard, isOver, answer)
      }
    }
  }

  deinit {
    isOver.withLock { $0 = true }
    try? FileManager.default.removeItem(at: folder)
  }

  /// The requests so far, on all connections.
  package var requests: [String] { heard.withLock { $0 } }

  /// The number of connections so far.
  package var connections: Int { served.withLock { $0 } }

  /// Waits until a request with this beginning has come.
  package func waitForRequest(_ beginning: String) throws {
    let deadline = Date(timeIntervalSinceNow: patience)
    while Date() < deadline {
      if requests.contains(where: { $0.hasPrefix(beginning) }) { return }
      usleep(5_000)
    }
    throw Failure("nobody asked '\(beginning)'")
  }

  private static func serve(
    _ connection: borrowing Descriptor, _ heard: Locked<[String]>, _ isOver: Locked<Bool>,
    _ answer: (String) -> Answer
  ) {
    var received: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while !isOver.withLock({ $0 }) {
      let deadline = Clock.monotonicMicroseconds + 50_000
      guard (try? TimedWait.wait(for: connection.number, until: deadline)) == .readable else { continue }
      guard let count = try? connection.receive(into: &chunk), count > 0 else { return }
      received += chunk[..<count]
      while let end = received.firstIndex(of: UInt8(ascii: "\n")) {
        let line = String(decoding: received[..<end], as: UTF8.self)
        received.removeSubrange(...end)
        heard.withLock { $0.append(line) }
        switch answer(line) {
        case .lines(let text): send(text, to: connection)
        case .lastLines(let text):
          send(text, to: connection)
          return
        }
      }
    }
  }

  private static func send(_ text: String, to connection: borrowing Descriptor) {
    let bytes = Array(text.utf8)
    var sent = 0
    do {
      while sent < bytes.count {
        let count = try connection.send(bytes, from: sent)
        if count == nil { usleep(1_000) }
        sent += count ?? 0
      }
    } catch {
      // The client has closed the connection. The tests examine its behaviour after that.
    }
  }
}

extension PlayedDaemon {
  /// Returns the answer to `backup`: rows with these pieces, and a total.
  package static func backup(_ pieces: [Data], total: Int? = nil) -> Answer {
    let rows = pieces.map { "* data=\($0.base64EncodedString())\n" }.joined()
    return .lines("\(rows)OK \(total ?? pieces.reduce(0) { $0 + $1.count })\n")
  }

  /// Returns the names in the folder except the socket.
  package func files() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0 != "socket" }.sorted()
  }
}

/// Runs the client with a passphrase in descriptor 3 and with the redirections in `shell`.
package func identityctl(
  at socket: String, passphrase: String = "correct horse", _ words: [String], shell: String = "", asUser: Int? = nil
) throws -> (status: Int32, output: String, errors: String) {
  let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
  let file = FileManager.default.temporaryDirectory.appending(path: "passphrase-\(UUID().uuidString)")
  try Data("\(passphrase)\n".utf8).write(to: file)
  defer { try? FileManager.default.removeItem(at: file) }
  let user = asUser.map { ["setpriv", "--reuid=\($0)", "--regid=\($0)", "--clear-groups"] } ?? []
  return try run(
    ["sh", "-c", "exec 3<'\(file.path)'; exec \"$@\" \(shell)", "sh"] + user + [program] + words,
    environment: ["IDENTITYD_SOCKET": socket])
}
