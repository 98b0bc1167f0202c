public import Glibc

/// A value behind a mutex, which one thread at a time can access.
///
/// ThreadSanitizer knows a POSIX mutex, but not `Synchronization.Mutex`, and takes every access
/// behind the latter for a race.
@safe @usableFromInline
package final class Locked<Value: Sendable>: @unchecked Sendable {
  // Sendable: code accesses the value only between lock and unlock.
  @usableFromInline var value: Value
  @usableFromInline let mutex: UnsafeMutablePointer<pthread_mutex_t>

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

  /// Runs `body` with exclusive access to the value. `body` must not wait for anything.
  @inlinable
  package func withLock<Result>(_ body: (inout Value) -> Result) -> Result {
    unsafe pthread_mutex_lock(mutex)
    defer { unsafe pthread_mutex_unlock(mutex) }
    return body(&value)
  }
}
