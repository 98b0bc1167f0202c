import Foundation

/// The longest wait of a test for an expected event, in seconds. Long enough for slow machines: only a hang reaches it.
/// `IDENTITYD_PATIENCE` sets it, for runs in which tests are expected to fail.
package let patience = ProcessInfo.processInfo.environment["IDENTITYD_PATIENCE"].flatMap { Double($0) } ?? 120

/// Waits until a condition holds. An error of the condition counts as no.
package func wait(_ what: String, for seconds: Double = patience, until condition: () throws -> Bool) throws {
  let deadline = Date(timeIntervalSinceNow: seconds)
  while Date() < deadline {
    if (try? condition()) == true { return }
    usleep(20_000)
  }
  throw Failure("\(what) within \(seconds) s")
}
