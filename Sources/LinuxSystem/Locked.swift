public import Glibc

/// A value that one thread at a time can reach.
///
/// A POSIX mutex rather than `Synchronization.Mutex`: ThreadSanitizer knows the one and takes everything behind the other
/// for a race.
@safe @usableFromInline
package final class Locked<Value: Sendable>: @unchecked Sendable {
  // Sendable: the value is touched only between lock and unlock.
  @usableFromInline var value: Value
  @usableFromInline let mutex: UnsafeMutablePointer<pthread_mutex_t>

  /// Puts the value behind a lock.
  package init(_ value: Value) {
    self.value = value
    unsafe mutex = .allocate(capacity: 1)
    unsafe mutex.initialize(to: pthread_mutex_t())
    unsafe pthread_mutex_init(mutex, nil)
  }

  deinit {
    unsafe pthread_mutex_destroy(mutex)
    unsafe mutex.deallocate()
  }

  /// Runs `body` while no other thread can reach the value. It must not wait for anything.
  @inlinable
  package func withLock<Result>(_ body: (inout Value) -> Result) -> Result {
    unsafe pthread_mutex_lock(mutex)
    defer { unsafe pthread_mutex_unlock(mutex) }
    return body(&value)
  }
}
