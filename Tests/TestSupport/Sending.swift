import Foundation

/// Sends text from a separate thread, for tests that read at the same time.
package final class Sender: @unchecked Sendable {
  // Sendable: the client's socket may be written and read concurrently. Only the reader touches the client's buffer.
  private let client: Client
  private let text: String
  private let done = DispatchSemaphore(value: 0)

  package init(_ client: Client, _ text: String) {
    self.client = client
    self.text = text
  }

  package func start() {
    Thread.detachNewThread { [self] in
      // The daemon may exit before it has received all of the text.
      try? client.send(text)
      done.signal()
    }
  }

  package func wait() { done.wait() }
}

extension DaemonUnderTest {
  /// Waits until `status` shows the value. The daemon counts a closed connection until it has noticed the close.
  package func waitForStatus(_ name: String, _ value: String) throws {
    let deadline = Date(timeIntervalSinceNow: patience)
    let client = try client()
    var shown: String?
    while Date() < deadline {
      shown = try client.statusValue(name)
      if shown == value { return }
      usleep(5_000)
    }
    throw Failure("status shows \(name)=\(shown ?? "nothing"), not \(value)")
  }
}

extension Client {
  /// Returns one value of `status`.
  package func statusValue(_ name: String) throws -> String? {
    try ask("status").first { $0.hasPrefix("* \(name)=") }.map { String($0.dropFirst(name.count + 3)) }
  }

  /// Returns the number of successful requests with a verb.
  package func requests(_ verb: String) throws -> Int {
    let row = try ask("stats").first { $0.hasSuffix(" verb=\"\(verb)\" outcome=ok") }
    return row?.firstMatch(of: /requests=(\d+)/).flatMap { Int($0.1) } ?? 0
  }
}
