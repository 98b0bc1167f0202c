import Foundation

/// Sends text from a thread of its own, for tests that read at the same time.
package final class Sender: @unchecked Sendable {
  // Sendable: the client's socket may be written and read at the same time; its buffer is touched by the reader alone.
  private let client: Client
  private let text: String
  private let done = DispatchSemaphore(value: 0)

  package init(_ client: Client, _ text: String) {
    self.client = client
    self.text = text
  }

  package func start() {
    Thread.detachNewThread { [self] in
      // The daemon may be ended before everything is taken.
      try? client.send(text)
      done.signal()
    }
  }

  package func wait() { done.wait() }
}

extension DaemonUnderTest {
  /// Waits until `status` shows the value: a client that just left is counted until the daemon has seen that.
  package func waitForStatus(_ name: String, _ value: String) throws {
    let deadline = Date(timeIntervalSinceNow: patience)
    let client = try client()
    var shown: String?
    while Date() < deadline {
      shown = try client.statusValue(name)
      if shown == value { return }
      usleep(1_000)
    }
    throw Failure("status shows \(name)=\(shown ?? "nothing"), not \(value)")
  }
}

extension Client {
  /// One value of `status`.
  package func statusValue(_ name: String) throws -> String? {
    try ask("status").first { $0.hasPrefix("* \(name)=") }.map { String($0.dropFirst(name.count + 3)) }
  }
}
