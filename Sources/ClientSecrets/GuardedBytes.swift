import CSodium

/// A secret in memory of its own, between guard pages, wiped when let go of, and never swapped out where the system can
/// promise that (libsodium, "secure memory").
@safe
struct GuardedBytes: ~Copyable {
  private let memory: UnsafeMutablePointer<UInt8>
  /// How many bytes there is room for.
  let capacity: Int
  /// How many there are.
  private(set) var count = 0

  /// Makes room; nil where there is no memory for it.
  init?(capacity: Int) {
    guard sodium_init() >= 0, let memory = unsafe sodium_malloc(capacity) else { return nil }
    unsafe self.memory = memory.bindMemory(to: UInt8.self, capacity: capacity)
    self.capacity = capacity
  }

  deinit { unsafe sodium_free(memory) }

  /// Takes a byte; false where there is no room left.
  mutating func append(_ byte: UInt8) -> Bool {
    guard count < capacity else { return false }
    unsafe memory[count] = byte
    count += 1
    return true
  }

  /// Lets `body` write all of it, which it does or returns false.
  mutating func fill(_ body: (UnsafeMutablePointer<UInt8>) -> Bool) -> Bool {
    guard unsafe body(memory) else { return false }
    count = capacity
    return true
  }

  /// Lends out where the bytes begin.
  func withBytes<Result>(_ body: (UnsafePointer<UInt8>) -> Result) -> Result { unsafe body(UnsafePointer(memory)) }
}
