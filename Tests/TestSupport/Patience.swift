import Foundation

/// How long a test waits for what has to come, in seconds: only what hangs takes as long, however slow the machine is.
/// `IDENTITYD_PATIENCE` sets it, for runs in which tests are expected to fail.
package let patience = ProcessInfo.processInfo.environment["IDENTITYD_PATIENCE"].flatMap { Double($0) } ?? 120
