import CSodium

/// A secret in memory of its own, between guard pages and wiped on release (libsodium, "secure memory").
///
/// The memory is not swapped out if the system can guarantee that.
@safe
struct GuardedBytes: ~Copyable {
  private let memory: UnsafeMutablePointer<UInt8>
  /// The capacity in bytes.
  let capacity: Int
  /// The number of bytes stored.
  private(set) var count = 0

  /// Allocates the memory; nil if there is not enough.
  init?(capacity: Int) {
    guard sodium_init() >= 0, let memory = unsafe sodium_malloc(capacity) else { return nil }
    unsafe self.memory = memory.bindMemory(to: UInt8.self, capacity: capacity)
    self.capacity = capacity
  }

  deinit { unsafe sodium_free(memory) }

  /// Appends a byte; returns false if the capacity is used up.
  mutating func append(_ byte: UInt8) -> Bool {
    guard count < capacity else { return false }
    unsafe memory[count] = byte
    count += 1
    return true
  }

  /// Lets `body` fill the capacity, or a part of it from its beginning.
  ///
  /// - Parameter body: gets the place and the capacity, and returns the number of bytes; nil if it failed.
  /// - Returns: false if `body` failed.
  mutating func fill(_ body: (UnsafeMutablePointer<UInt8>, Int) -> Int?) -> Bool {
    guard let filled = unsafe body(memory, capacity) else { return false }
    count = filled
    return true
  }

  /// Returns whether both hold the same bytes. The comparison takes constant time if the lengths are equal.
  func matches(_ other: borrowing GuardedBytes) -> Bool {
    guard count == other.count else { return false }
    return unsafe sodium_memcmp(memory, other.memory, count) == 0
  }

  /// Calls `body` with a pointer to the bytes, which is valid only during the call.
  func withBytes<Result>(_ body: (UnsafePointer<UInt8>) -> Result) -> Result { unsafe body(UnsafePointer(memory)) }
}
