import IdentityCore
import IdentityStore
import Systemd

/// The watch on the state directory, which has the writer examine the store when it may have changed from outside.
///
/// The loop itself never looks into the directory, because clients would wait for the disk meanwhile.
final class StateWatch {
  private let examine: () -> Void
  private var timer: EventSource?

  /// Starts the watch. `examine` asks the writer to examine the store.
  init(loop: EventLoop, examine: @escaping () -> Void) throws(SystemdError) {
    self.examine = examine
    timer = try loop.timer(after: UInt64.max / 2) { [unowned self] in self.examine() }
    timer?.disable()
  }

  /// Takes in the condition of the store after a look at it. Has it examined again while the store cannot be written:
  /// nothing announces that a file system was mounted read-write.
  func note(_ condition: StoreCondition) {
    guard condition.kind == .readOnly else { return }
    timer?.arm(after: UInt64(Bound.lookAgainMilliseconds) * 1_000)
  }
}
