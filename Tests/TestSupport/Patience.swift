import Foundation

/// The longest wait of a test for an expected event, in seconds. Long enough for slow machines: only a hang reaches it.
/// `IDENTITYD_PATIENCE` sets it, for runs in which tests are expected to fail.
package let patience = ProcessInfo.processInfo.environment["IDENTITYD_PATIENCE"].flatMap { Double($0) } ?? 120
