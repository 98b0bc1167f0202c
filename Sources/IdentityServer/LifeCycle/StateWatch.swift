import IdentityCore
import IdentityStore
import Systemd

/// The watch on the state directory, which has the writer examine the store when it may have changed from outside.
///
/// The loop itself never looks into the directory, because clients would wait for the disk meanwhile.
final class StateWatch {
  private let examine: () -> Void
  private var timer: EventSource?
  private var folder: EventSource?
  /// Whether a change waits for the timer.
  private var isSettling = false

  /// Starts the watch.
  ///
  /// - Parameters:
  ///   - folder: the path of the state directory.
  ///   - examine: asks the writer to examine the store.
  ///   - warn: reports that the directory cannot be watched. The next commit notices what the watch would have.
  init(
    _ folder: String, loop: EventLoop, examine: @escaping () -> Void, warn: (SystemdError) -> Void
  ) throws(SystemdError) {
    self.examine = examine
    timer = try loop.timer(after: UInt64.max / 2) { [unowned self] in
      isSettling = false
      self.examine()
    }
    timer?.disable()
    do {
      self.folder = try loop.watch(folder: folder) { [unowned self] _ in somethingHappened() }
    } catch {
      warn(error)
    }
  }

  /// Takes in the condition of the store after a look at it. Has it examined again while the store cannot be written or
  /// read: nothing announces that a file system was mounted read-write, or that a disk is back.
  func note(_ condition: StoreCondition) {
    guard [.readOnly, .readError].contains(condition.kind), !isSettling else { return }
    timer?.arm(after: UInt64(Bound.lookAgainMilliseconds) * 1_000)
  }

  /// Takes in a change of a name in the directory, of the daemon or of another program.
  ///
  /// A program that removes several files should have removed them before the store is restored.
  private func somethingHappened() {
    guard !isSettling else { return }
    isSettling = true
    timer?.arm(after: UInt64(Bound.quietMilliseconds) * 1_000)
  }
}
